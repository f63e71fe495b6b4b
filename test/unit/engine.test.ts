import { describe, expect, it } from "vitest";
import { BadRequestError, EngineClosedError, InternalError, ModelLoadError, RateLimitError } from "../../src/errors.js";
import type { ChatCompletionChunk } from "../../src/openai/types.js";
import { engineOptions } from "../../src/options.js";
import { hi, modelFile, rejection, scripted } from "../support/scripted-engine.js";

const pieces = ["Hel", "lo", " ", "wörld", " 🦙"];
const contextFailure = {
  code: "context_length_exceeded",
  status: 400,
  param: "messages",
  message: "prompt token count 9 exceeds the context size 8",
};

async function collect(stream: AsyncIterable<ChatCompletionChunk>): Promise<ChatCompletionChunk[]> {
  const chunks: ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

describe("streamed answer", () => {
  it("has the shape that OpenAI sends", async () => {
    const { engine } = await scripted({ script: { pieces } });
    const chunks = await collect(await engine.chat.completions.create({ ...hi, stream: true }));
    expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([
      { role: "assistant", content: "" },
      ...pieces.map((content) => ({ content })),
      {},
    ]);
    expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1);
    expect(chunks[0]?.id).toMatch(/^chatcmpl-[0-9a-f]{32}$/);
    expect(chunks[0]?.system_fingerprint).toMatch(/^tokenloop-\d+\.\d+\.\d+-llama\.cpp-b10679$/);
    for (const chunk of chunks) {
      expect(chunk).not.toHaveProperty("usage");
      expect(chunk.object).toBe("chat.completion.chunk");
      expect(Object.keys(chunk.choices[0] ?? {}).sort()).toEqual(["delta", "finish_reason", "index", "logprobs"]);
    }
    expect(chunks.slice(0, -1).every((chunk) => chunk.choices[0]?.finish_reason === null)).toBe(true);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("stop");
    expect(chunks.at(-1)?.timings).toMatchObject({ prompt_n: 6, prompt_per_second: 2000, predicted_per_second: 500 });
  });

  it("sends the usage only on request, in a last chunk without choices", async () => {
    const { engine } = await scripted({ script: { pieces, finish: "length" } });
    const stream = await engine.chat.completions.create({
      ...hi,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await collect(stream);
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("length");
    expect(chunks.at(-1)?.choices).toEqual([]);
    expect(chunks.at(-1)?.usage).toEqual({
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 0,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    });
  });

  it("sends a role and a finish chunk for an empty answer, and no empty deltas", async () => {
    const { engine } = await scripted({ script: { pieces: ["", ""] } });
    const chunks = await collect(await engine.chat.completions.create({ ...hi, stream: true }));
    expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([{ role: "assistant", content: "" }, {}]);
  });

  it("can be read only once", async () => {
    const { engine } = await scripted({ script: { pieces } });
    const stream = await engine.chat.completions.create({ ...hi, stream: true });
    await collect(stream);
    expect(await rejection(collect(stream))).toMatchObject({ code: "stream_consumed" });
  });

  it("serves next() calls that do not wait for each other, in order", async () => {
    const { engine } = await scripted({ script: { pieces: ["a", "b"] } });
    const stream = await engine.chat.completions.create({ ...hi, stream: true });
    const iterator = stream[Symbol.asyncIterator]();
    const results = await Promise.all(Array.from({ length: 6 }, () => iterator.next()));
    expect(results.map(({ done }) => done)).toEqual([false, false, false, false, true, true]);
    expect(results.map(({ value }) => value?.choices[0]?.delta.content)).toEqual([
      "",
      "a",
      "b",
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("keeps 32 requests apart", async () => {
    const { engine, native } = await scripted({
      script: (_request, nth) => ({ pieces: Array.from({ length: 20 }, (_, i) => `${nth}.${i} `) }),
    });
    const answers = await Promise.all(Array.from({ length: 32 }, () => engine.chat.completions.create({ ...hi })));
    answers.forEach((answer, nth) => {
      expect(answer.choices[0]?.message.content).toBe(Array.from({ length: 20 }, (_, i) => `${nth}.${i} `).join(""));
    });
    expect(new Set(answers.map(({ id }) => id)).size).toBe(32);
    expect(native.live).toBe(0);
  });
});

describe("whole answer", () => {
  it("equals the fold of what streaming sends", async () => {
    const { engine } = await scripted({ script: { pieces } });
    const whole = await engine.chat.completions.create({ ...hi });
    const chunks = await collect(
      await engine.chat.completions.create({ ...hi, stream: true, stream_options: { include_usage: true } }),
    );
    expect(whole.choices).toEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: chunks.map((c) => c.choices[0]?.delta.content ?? "").join(""),
          refusal: null,
        },
        logprobs: null,
        finish_reason: "stop",
      },
    ]);
    expect(whole.usage).toEqual(chunks.at(-1)?.usage);
    expect(whole.timings).toEqual(chunks.at(-2)?.timings);
    expect(whole).toMatchObject({ object: "chat.completion", model: "Scripted Model" });
    expect(whole.system_fingerprint).toBe(chunks[0]?.system_fingerprint);
  });

  it('has content "" when the model says nothing', async () => {
    const { engine } = await scripted();
    const whole = await engine.chat.completions.create({ ...hi });
    expect(whole.choices[0]?.message).toEqual({ role: "assistant", content: "", refusal: null });
    expect(whole.timings.predicted_per_second).toBe(0);
  });
});

describe("failures", () => {
  it("rejects create() when the engine refuses the request", async () => {
    const { engine } = await scripted({
      script: { refuse: { code: "queue_full", status: 429, param: null, message: "full" } },
    });
    const error = await rejection(engine.chat.completions.create({ ...hi, stream: true }));
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ code: "queue_full", status: 429, param: null, message: "full" });
  });

  it.each([true, false])("rejects create() when the prompt fails (stream: %s)", async (stream) => {
    const { engine, native } = await scripted({ script: { failFirst: contextFailure } });
    const error = await rejection(engine.chat.completions.create({ ...hi, stream }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ code: "context_length_exceeded", status: 400, param: "messages" });
    expect(native.live).toBe(0);
  });

  it("ends the iterator with an error after the text that came before it", async () => {
    const failure = { code: "decode_failed", status: 500, param: null, message: "no memory" };
    const { engine } = await scripted({ script: { pieces, failAfter: { pieces: 2, failure } } });
    const stream = await engine.chat.completions.create({ ...hi, stream: true });
    const texts: string[] = [];
    const error = await rejection(
      (async () => {
        for await (const chunk of stream) texts.push(chunk.choices[0]?.delta.content ?? "");
      })(),
    );
    expect(texts).toEqual(["", "Hel", "lo"]);
    expect(error).toBeInstanceOf(InternalError);
    expect(error).toMatchObject({ code: "decode_failed", status: 500 });
  });
});

describe("close", () => {
  it("ends running streams with EngineClosedError, refuses new requests, and is idempotent", async () => {
    const { engine, native } = await scripted({ script: { pieces: ["a"], hang: "decoding" } });
    const stream = await engine.chat.completions.create({ ...hi, stream: true });
    const whole = engine.chat.completions.create({ ...hi });
    const reading = collect(stream);
    const failures = Promise.all([rejection(whole), rejection(reading)]);
    const closing = engine.close();
    expect(engine.close()).toBe(closing);
    await closing;
    for (const error of await failures) expect(error).toBeInstanceOf(EngineClosedError);
    expect(native.closed).toBe(1);
    for (const call of [
      () => engine.chat.completions.create({ ...hi }),
      () => engine.tokenize("x"),
      () => engine.applyTemplate(hi.messages),
      async () => engine.stats(),
    ]) {
      expect(await rejection(call())).toMatchObject({ code: "engine_closed", status: 503 });
    }
  });

  it("leaves nobody waiting, even if the addon forgets a last event", async () => {
    const { engine } = await scripted({ script: { hang: "queued" }, forgetLastEvents: true });
    const error = rejection(engine.chat.completions.create({ ...hi }));
    await engine[Symbol.asyncDispose]();
    expect(await error).toBeInstanceOf(EngineClosedError);
  });
});

describe("Engine.load", () => {
  it("passes defaults and options on, and reports progress", async () => {
    const progress: number[] = [];
    const { engine, native } = await scripted(
      {},
      { parallel: 3, mmap: false, chatTemplate: "{{ x }}", onProgress: (fraction) => progress.push(fraction) },
    );
    const defaults = Object.fromEntries(engineOptions.map((row) => [row.name, row.default]));
    expect(native.loadOptions).toEqual({
      ...defaults,
      model: modelFile,
      parallel: 3,
      mmap: false,
      chatTemplate: "{{ x }}",
    });
    expect(progress).toEqual([0.5, 1]);
    expect(engine.info).toMatchObject({ id: "Scripted Model", path: modelFile, vocabSize: 1000 });
    expect(engine.info.build.llamaBuild).toBe(10679);
  });

  it("takes the model's id from the options, the GGUF or the file name", async () => {
    const given = await scripted({}, { modelId: "mine" });
    expect((await given.engine.chat.completions.create({ ...hi, model: "other" })).model).toBe("mine");
    const unnamed = await scripted({ info: { name: "" } });
    expect(unnamed.engine.info.id).toBe("nano");
  });

  it.each([
    [{ paralel: 2 }, "paralel", "unknown_option", /'parallel'/],
    [{ context_size: 2 }, "context_size", "unknown_option", /'contextSize'/],
    [{ parallel: 0 }, "parallel", "invalid_option", /an integer from 1 to 256/],
    [{ parallel: 1.5 }, "parallel", "invalid_option", /integer/],
    [{ parallel: "2" }, "parallel", "invalid_option", /integer/],
    [{ stepTargetMs: 0 }, "stepTargetMs", "invalid_option", /above 0 and at most 60000/],
    [{ threads: Number.NaN }, "threads", "invalid_option", /integer/],
    [{ mmap: 1 }, "mmap", "invalid_option", /a boolean/],
    [{ model: "" }, "model", "invalid_option", /path/],
    [{ modelId: "" }, "modelId", "invalid_option", /empty/],
    [{ onProgress: 1 }, "onProgress", "invalid_option", /function/],
    [{ signal: {} }, "signal", "invalid_option", /AbortSignal/],
  ])("refuses %j", async (options, param, code, message) => {
    const error = await rejection(scripted({}, options as object));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ param, code, message: expect.stringMatching(message) });
  });

  it.each(["/no/such/model.gguf", "/"])("names the path that cannot be loaded: %s", async (model) => {
    const error = await rejection(scripted({}, { model }));
    expect(error).toBeInstanceOf(ModelLoadError);
    expect(error).toMatchObject({ path: model, code: "model_file_not_found" });
    expect((error as Error).message).toContain(`'${model}'`);
  });

  it("keeps what the addon says about a bad file", async () => {
    const loadFailure = { code: "invalid_gguf", status: 500, param: null, message: "bad magic" };
    const error = await rejection(scripted({ loadFailure }));
    expect(error).toBeInstanceOf(ModelLoadError);
    expect(error).toMatchObject({ code: "invalid_gguf" });
    expect((error as Error).message).toContain(modelFile);
  });

  it("is aborted by the signal: before, during", async () => {
    const reason = new Error("enough");
    expect(await rejection(scripted({}, { signal: AbortSignal.abort(reason) }))).toMatchObject({
      name: "AbortError",
      cause: reason,
    });
    const controller = new AbortController();
    const error = rejection(scripted({ loadDelay: Infinity }, { signal: controller.signal }));
    setTimeout(() => controller.abort(reason), 5);
    expect(await error).toMatchObject({ name: "AbortError", cause: reason });
  });
});

describe("tokenize and applyTemplate", () => {
  it("go to the addon, with messages mapped as in a request", async () => {
    const { engine } = await scripted();
    expect([...(await engine.tokenize("ab"))]).toEqual([97, 98]);
    expect(await engine.applyTemplate([{ role: "developer", content: [{ type: "text", text: "x" }] }])).toBe(
      '[{"role":"system","content":"x"}]',
    );
    expect(await rejection(engine.applyTemplate([]))).toMatchObject({ param: "messages" });
  });
});
