import { describe, expect, it } from "vitest";
import {
  AbortError,
  BadRequestError,
  EngineClosedError,
  fromNative,
  InternalError,
  NotFoundError,
  RateLimitError,
  TokenloopError,
  toErrorBody,
} from "../../src/errors.js";

describe("fromNative", () => {
  const failure = { code: "c", status: 400, param: "messages", message: "m" };
  it.each([
    [failure, BadRequestError, { code: "c", status: 400, param: "messages", type: "invalid_request_error" }],
    [{ ...failure, status: 413 }, BadRequestError, { status: 413 }],
    [{ ...failure, status: 404 }, NotFoundError, { status: 404 }],
    [
      { ...failure, status: 429, code: "queue_full" },
      RateLimitError,
      { status: 429, code: "queue_full", retryAfter: 1 },
    ],
    [{ ...failure, status: 503, code: "engine_closed" }, EngineClosedError, { status: 503, code: "engine_closed" }],
    [{ ...failure, status: 500 }, InternalError, { status: 500, code: "c", type: "server_error" }],
    [
      Object.assign(new Error("m"), { code: "c", status: 400, param: "stop" }),
      BadRequestError,
      { param: "stop", message: "m" },
    ],
    [new TypeError("boom"), InternalError, { status: 500, code: "internal_error", message: "boom" }],
    [{}, InternalError, { status: 500, code: "internal_error", param: null }],
    ["text", InternalError, { message: "text" }],
    [null, InternalError, { status: 500 }],
    [
      { ...failure, status: "400", code: 7, param: 7, message: "" },
      InternalError,
      { status: 500, code: "internal_error", param: null },
    ],
  ])("maps %j", (input, type, fields) => {
    const error = fromNative(input);
    expect(error).toBeInstanceOf(type);
    expect(error).toBeInstanceOf(TokenloopError);
    expect(error).toMatchObject(fields);
    expect(error.name).toBe(type.name);
  });

  it("leaves our own errors alone", () => {
    const error = new AbortError("why");
    expect(fromNative(error)).toBe(error);
    expect(error).toMatchObject({ name: "AbortError", code: "ABORT_ERR", cause: "why" });
  });
});

describe("toErrorBody", () => {
  it("has all four keys, and keeps foreign errors to itself", () => {
    expect(toErrorBody(new BadRequestError("m", "stop"))).toEqual({
      error: { message: "m", type: "invalid_request_error", param: "stop", code: "invalid_value" },
    });
    expect(toErrorBody(new Error("/secret/path"))).toEqual({
      error: { message: "Internal error.", type: "server_error", param: null, code: "internal_error" },
    });
  });
});
