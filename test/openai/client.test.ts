import OpenAI, {
  APIUserAbortError,
  BadRequestError,
  type ClientOptions,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "openai";
import { describe, expect, it } from "vitest";
import { hi, rejection, scripted, tick } from "../support/scripted-engine.js";

const pieces = ["Hel", "lo ", "wörld", " 🦙"];
const request = { ...hi, model: "any" };

function client(fetch: NonNullable<ClientOptions["fetch"]>): OpenAI {
  return new OpenAI({ apiKey: "-", baseURL: "http://local/v1", fetch, maxRetries: 0 });
}

describe("the official client over engine.fetch", () => {
  it("completes", async () => {
    const { engine } = await scripted({ script: { pieces } });
    const { data, request_id } = await client(engine.fetch).chat.completions.create(request).withResponse();
    expect(data.choices[0]?.message.content).toBe(pieces.join(""));
    expect(data.usage?.total_tokens).toBe(14);
    expect(request_id).toMatch(/^req_/);
  });

  it("streams", async () => {
    const { engine } = await scripted({ script: { pieces } });
    const stream = await client(engine.fetch).chat.completions.create({ ...request, stream: true });
    const texts: string[] = [];
    for await (const chunk of stream) texts.push(chunk.choices[0]?.delta.content ?? "");
    expect(texts).toEqual(["", ...pieces, ""]);
  });

  it("accumulates with its own helper, which is strict about shapes", async () => {
    const { engine } = await scripted({ script: { pieces } });
    const runner = client(engine.fetch).chat.completions.stream({
      ...request,
      stream_options: { include_usage: true },
    });
    const completion = await runner.finalChatCompletion();
    expect(completion.choices[0]?.message.content).toBe(pieces.join(""));
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    expect((await runner.totalUsage()).completion_tokens).toBe(4);
  });

  it("aborts by its signal, by break and by its controller", async () => {
    const { engine, native } = await scripted({ script: { pieces, hang: "decoding" } });
    const openai = client(engine.fetch);
    const controller = new AbortController();
    const whole = rejection(openai.chat.completions.create(request, { signal: controller.signal }));
    await tick(10);
    controller.abort();
    expect(await whole).toBeInstanceOf(APIUserAbortError);

    for await (const _chunk of await openai.chat.completions.create({ ...request, stream: true })) break;

    const stream = await openai.chat.completions.create({ ...request, stream: true });
    for await (const _chunk of stream) stream.controller.abort();

    for (let i = 0; i < 100 && native.live > 0; i++) await tick(1);
    expect(native.live).toBe(0);
    expect(native.cancels).toHaveLength(3);
  });

  it("gets errors in the classes it knows", async () => {
    const failure = (status: number) => ({ code: "c", status, param: null, message: "m" });
    const full = await scripted({ script: { refuse: failure(429) } });
    expect(await rejection(client(full.engine.fetch).chat.completions.create(request))).toBeInstanceOf(RateLimitError);
    const bad = await scripted({ script: { failFirst: failure(500) } });
    expect(await rejection(client(bad.engine.fetch).chat.completions.create(request))).toBeInstanceOf(
      InternalServerError,
    );
    const { engine } = await scripted();
    const openai = client(engine.fetch);
    const error = await rejection(openai.chat.completions.create({ ...request, temperature: 3 }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({
      status: 400,
      param: "temperature",
      type: "invalid_request_error",
      code: "invalid_value",
    });
    expect(await rejection(openai.models.retrieve("other"))).toBeInstanceOf(NotFoundError);
    const ids: string[] = [];
    for await (const { id } of openai.models.list()) ids.push(id);
    expect(ids).toEqual(["Scripted Model"]);
  });

  it("throws on an error in the middle of a stream", async () => {
    const failure = { code: "decode_failed", status: 500, param: null, message: "no memory" };
    const { engine } = await scripted({ script: { pieces, failAfter: { pieces: 1, failure } } });
    const stream = await client(engine.fetch).chat.completions.create({ ...request, stream: true });
    const texts: string[] = [];
    const error = await rejection(
      (async () => {
        for await (const chunk of stream) texts.push(chunk.choices[0]?.delta.content ?? "");
      })(),
    );
    expect(texts).toEqual(["", "Hel"]);
    expect(error).toMatchObject({ code: "decode_failed", message: expect.stringContaining("no memory") });
  });
});
