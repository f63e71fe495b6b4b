import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { limits } from "../../src/openai/limits.js";
import type { ChatCompletionChunk } from "../../src/openai/types.js";
import { hi, rejection, scripted, tick } from "../support/scripted-engine.js";

const url = "http://local/v1/chat/completions";
const pieces = ['He said "hi"', "\n", "wörld", " 🦙", "\u2028", "</script>"];
const queueFull = { code: "queue_full", status: 429, param: null, message: "full" };
const tooLong = { code: "context_length_exceeded", status: 400, param: "messages", message: "too long" };
const broken = { code: "decode_failed", status: 500, param: null, message: "no memory" };

function post(body: unknown, init: RequestInit = {}): Request {
  return new Request(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...init,
  });
}

/** The data of each event; checks that there is nothing but events. */
async function events(response: Response): Promise<string[]> {
  const text = await response.text();
  expect(text.endsWith("\n\n")).toBe(true);
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((event) => {
      expect(event).toMatch(/^data: [^\n]*$/);
      return event.slice(6);
    });
}

describe("POST /v1/chat/completions", () => {
  it("streams the bytes that JSON.stringify of each chunk gives", async () => {
    const { engine } = await scripted({ script: { pieces } }, { modelId: 'a "quoted" name' });
    for (const include_usage of [false, true]) {
      const response = await engine.fetch(post({ ...hi, stream: true, stream_options: { include_usage } }));
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
      expect(response.headers.get("cache-control")).toContain("no-cache");
      expect(response.headers.get("x-request-id")).toMatch(/^req_/);
      const data = await events(response);
      expect(data.pop()).toBe("[DONE]");
      const chunks = data.map((json) => JSON.parse(json) as ChatCompletionChunk);
      expect(data).toEqual(chunks.map((chunk) => JSON.stringify(chunk)));
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content)).toEqual([
        "",
        ...pieces,
        ...Array(include_usage ? 2 : 1).fill(undefined),
      ]);
      expect(chunks.map(({ model }) => model)).toEqual(chunks.map(() => 'a "quoted" name'));
      expect(chunks.every((chunk) => "usage" in chunk === include_usage)).toBe(true);
    }
  });

  it("writes what is ready together to a reader that lags", async () => {
    const { engine, native } = await scripted({ script: { pieces: Array(100).fill("x") } });
    const response = await engine.fetch(post({ ...hi, stream: true }));
    while (native.live > 0) await tick();
    const parts: string[] = [];
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) parts.push(decoder.decode(part, { stream: true }));
    expect(parts.join("").match(/^data: /gm)).toHaveLength(103);
    expect(parts.length).toBeLessThan(8);
  });

  it("hears the abort of a Request that nobody else holds", async () => {
    const { engine, native } = await scripted({ script: { hang: "decoding" } });
    const controller = new AbortController();
    const response = await engine.fetch(post({ ...hi, stream: true }, { signal: controller.signal }));
    const failure = rejection(response.text());
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    for (let i = 0; i < 5; i++) {
      await tick(2);
      collect();
    }
    controller.abort();
    expect(await failure).toMatchObject({ name: "AbortError" });
    expect(native.live).toBe(0);
  });

  it("takes no notice of what servers hand over beside a Request", async () => {
    const { engine } = await scripted({ script: { pieces } });
    for (const second of [{ port: 1, url: "http://x/", hostname: "x" }, { remoteAddr: {} }, {}]) {
      expect((await engine.fetch(post(hi), second as RequestInit)).status).toBe(200);
    }
    const changed = await engine.fetch(post(hi), { headers: { "x-request-id": "second" } });
    expect(changed.headers.get("x-request-id")).toBe("second");
  });

  it("answers whole", async () => {
    const { engine } = await scripted({ script: { pieces } });
    for (const path of ["/v1/chat/completions", "/chat/completions", "/v1/chat/completions/"]) {
      const response = await engine.fetch(`http://local${path}`, {
        method: "POST",
        headers: { "content-type": "application/json; charset=utf-8", "x-request-id": "mine-1" },
        body: JSON.stringify(hi),
      });
      expect(response.status).toBe(200);
      expect(response.headers.get("x-request-id")).toBe("mine-1");
      expect(await response.json()).toMatchObject({ choices: [{ message: { content: pieces.join("") } }] });
    }
  });

  it.each([true, false])("answers an error before the first chunk with its status (stream: %s)", async (stream) => {
    const { engine } = await scripted({ script: { failFirst: tooLong } });
    const response = await engine.fetch(post({ ...hi, stream }));
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: { message: "too long", type: "invalid_request_error", param: "messages", code: "context_length_exceeded" },
    });
  });

  it("sends an error on the way as the last event, without [DONE]", async () => {
    const { engine } = await scripted({ script: { pieces, failAfter: { pieces: 1, failure: broken } } });
    const data = await events(await engine.fetch(post({ ...hi, stream: true })));
    expect(data).toHaveLength(3);
    expect(JSON.parse(data.at(-1) ?? "")).toEqual({
      error: { message: "no memory", type: "server_error", param: null, code: "decode_failed" },
    });
  });

  it("says when to come back if the queue is full", async () => {
    const { engine } = await scripted({ script: { refuse: queueFull } });
    const response = await engine.fetch(post({ ...hi, stream: true }));
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await response.json()).toMatchObject({ error: { code: "queue_full", type: "rate_limit_error" } });
  });

  it("refuses what is no JSON, too big or of another type", async () => {
    const { engine } = await scripted();
    const cases: [Request, number, string][] = [
      [post("{"), 400, "invalid_json"],
      [post(""), 400, "invalid_json"],
      [post("[]"), 400, "invalid_type"],
      [post({ messages: [] }), 400, "empty_array"],
      [new Request(url, { method: "POST", headers: { "content-type": "application/json" } }), 400, "invalid_json"],
      [post(new Uint8Array([0xff, 0xfe]) as never, { body: new Uint8Array([0x22, 0xff, 0x22]) }), 400, "invalid_json"],
      [post("x", { headers: { "content-type": "text/plain" } }), 415, "unsupported_media_type"],
      [post(" ".repeat(limits.bodyBytes + 1)), 413, "request_too_large"],
      [
        post("{}", { headers: { "content-length": "99999999", "content-type": "application/json" } }),
        413,
        "request_too_large",
      ],
    ];
    for (const [request, status, code] of cases) {
      const response = await engine.fetch(request);
      expect([response.status, code]).toEqual([status, code]);
      const { error } = (await response.json()) as { error: object };
      expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
      expect(error).toMatchObject({ code, type: "invalid_request_error" });
    }
  });

  it("is cancelled by cancelling the body", async () => {
    const { engine, native } = await scripted({ script: { pieces, hang: "decoding" }, cancelDelay: 5 });
    const response = await engine.fetch(post({ ...hi, stream: true }));
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(native.live).toBe(0);
    expect(native.cancels).toEqual([1]);
  });

  it.each(["request", "init"])("is cancelled by the %s's signal: streamed, waiting, whole", async (where) => {
    const { engine, native } = await scripted({
      script: (_request, nth) => ({ pieces, hang: nth === 1 ? "queued" : "decoding" }),
    });
    const controller = new AbortController();
    const send = (stream: boolean) => {
      const request = post({ ...hi, stream }, where === "request" ? { signal: controller.signal } : {});
      return where === "request" ? engine.fetch(request) : engine.fetch(request, { signal: controller.signal });
    };
    const streamed = (await send(true)).text();
    const waiting = rejection(send(true));
    const whole = rejection(send(false));
    const failures = Promise.all([rejection(streamed), waiting, whole]);
    await tick(10);
    controller.abort();
    for (const error of await failures) expect(error).toMatchObject({ name: "AbortError" });
    expect(native.live).toBe(0);
    expect(native.cancels).toHaveLength(3);
    expect(await rejection(send(false))).toMatchObject({ name: "AbortError" });
    expect(native.requests).toHaveLength(3);
  });

  it("answers 503 after close, and tells clients not to retry", async () => {
    const { engine } = await scripted();
    await engine.close();
    const response = await engine.fetch(post(hi));
    expect(response.status).toBe(503);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect((await engine.fetch("http://local/health")).status).toBe(503);
  });
});

describe("other routes", () => {
  it("lists the model, finds it, and says that it is well", async () => {
    const { engine } = await scripted({}, { modelId: "org/name" });
    const model = { id: "org/name", object: "model", created: engine.info.created, owned_by: "tokenloop" };
    expect(await (await engine.fetch("http://local/v1/models")).json()).toEqual({ object: "list", data: [model] });
    for (const path of ["/v1/models/org%2Fname", "/v1/models/org/name", "/models/org%2Fname"]) {
      expect(await (await engine.fetch(`http://local${path}`)).json()).toEqual(model);
    }
    expect(await (await engine.fetch("http://local/health")).json()).toEqual({ status: "ok" });
  });

  it.each([
    ["GET", "/v1/models/other", 404, "model_not_found"],
    ["GET", "/v1/models/%E0%A4%A", 404, "model_not_found"],
    ["GET", "/", 404, "unknown_url"],
    ["POST", "/v1/images", 404, "unknown_url"],
    ["GET", "/v1/chat/completions", 405, "method_not_allowed"],
    ["DELETE", "/v1/models", 405, "method_not_allowed"],
  ])("%s %s is %i", async (method, path, status, code) => {
    const { engine } = await scripted();
    const response = await engine.fetch(`http://local${path}`, { method });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code, type: "invalid_request_error" } });
    expect(response.headers.has("allow")).toBe(status === 405);
  });
});
