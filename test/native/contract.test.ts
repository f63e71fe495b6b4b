import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadNative, type NativeEngine, type NativeSampling, recordSize } from "../../src/native.js";
import { engineOptions, samplingOptions } from "../../src/options.js";
import { nanoModel } from "../models/nano.js";

/** Field names with their types, so that a change of src/native.ts must be a change here. */
const addonExports = { buildInfo: "function", estimateMemory: "function", loadModel: "function" };
const engineMembers = {
  applyTemplate: "function",
  cancel: "function",
  close: "function",
  info: "object",
  pieces: "function",
  stats: "function",
  submit: "function",
  take: "function",
  savePrefix: "function",
  restorePrefix: "function",
  tokenize: "function",
};
const infoFields = {
  batchSize: "number",
  chatTemplate: "string",
  contextSize: "number",
  description: "string",
  memory: "object",
  name: "string",
  parallel: "number",
  parameters: "number",
  size: "number",
  trainingContext: "number",
  vocabSize: "number",
};
const statsFields = [
  "acceptedTokens",
  "cachedTokens",
  "cancelled",
  "cancelledDecoding",
  "cancelledPrefilling",
  "cancelledQueued",
  "cells",
  "cellsCached",
  "cellsUsed",
  "decodeMs",
  "decoding",
  "draftedTokens",
  "evictions",
  "failed",
  "finished",
  "generatedTokens",
  "loopMs",
  "parkings",
  "paused",
  "pauses",
  "peakSequences",
  "preemptions",
  "prefilling",
  "promptTokens",
  "queued",
  "sampleMs",
  "sequences",
  "sharedSteps",
  "stalled",
  "steps",
  "stepsBySequences",
  "timedOut",
];

const types = (value: object) =>
  Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, typeof member]),
  );

const loadOptions = {
  ...Object.fromEntries(engineOptions.map((row) => [row.name, row.default])),
  model: nanoModel(),
  contextSize: 256,
  parallel: 2,
} as never;

const sampling: NativeSampling = {
  ...(Object.fromEntries(samplingOptions.map((row) => [row.name, row.default])) as unknown as NativeSampling),
  temperature: 0,
  logit_bias: new Float64Array(),
  dry_sequence_breakers: [],
  samplers: [],
  ignore_eos: false,
  min_tokens: 0,
};
const request = {
  messages: '[{"role":"user","content":"Hello!"}]',
  maxTokens: 20,
  stop: [],
  grammar: "",
  logprobs: -1,
  n: 1,
  cachePrompt: true,
  cacheKey: "",
  priority: 0,
  timeoutMs: 0,
  predictMs: 0,
  sampling,
};

interface Heard {
  text: string;
  records: number[][];
}

describe("the native contract", () => {
  const addon = loadNative();
  const heard: Heard = { text: "", records: [] };
  let engine: NativeEngine;
  beforeAll(async () => {
    const onEvents = (text: string, records: Int32Array) => {
      expect(records.length % recordSize).toBe(0);
      for (let at = 0; at < records.length; at += recordSize) {
        const record = [...records.subarray(at, at + recordSize)];
        heard.text += text.slice(record[4], record[5]);
        heard.records.push(record);
      }
    };
    engine = await addon.loadModel(loadOptions, onEvents, undefined).promise;
  });
  afterAll(() => engine.close());

  it("is exactly what the addon exports", () => {
    expect(types(addon)).toEqual(addonExports);
    expect(types(engine)).toEqual(engineMembers);
    expect(types(engine.info)).toEqual(infoFields);
    expect(Object.keys(engine.stats()).sort()).toEqual(statsFields);
    expect(types(addon.buildInfo())).toEqual({
      devices: "object",
      llamaBuild: "number",
      llamaCommit: "string",
      sanitized: "boolean",
      systemInfo: "string",
    });
  });

  it("sends the events of a request in order, and its last one once", async () => {
    const id = engine.submit(request);
    expect(id).toBeGreaterThan(0);
    while (!heard.records.some(([request_, , kind]) => request_ === id && (kind === 2 || kind === 3))) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const kinds = heard.records.filter(([request_]) => request_ === id).map(([, , kind]) => kind);
    expect(kinds[0]).toBe(0);
    expect(kinds.slice(1, -1).every((kind) => kind === 1)).toBe(true);
    expect(kinds.at(-1)).toBe(2);
    const result = JSON.parse(heard.text.slice(heard.text.indexOf("{")));
    const prompt = "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n";
    expect(await engine.applyTemplate(request.messages)).toBe(prompt);
    expect(result).toMatchObject({
      prompt_tokens: (await engine.tokenize(prompt, true, true)).length,
      cached_tokens: 0,
    });
    expect(heard.text.startsWith("Hello! How can I help you?")).toBe(true);
  });

  it("refuses what would trip llama.cpp, with the field's name", () => {
    const submit = (change: object, param: string) => {
      let error: unknown;
      try {
        engine.submit({ ...request, ...change });
      } catch (thrown) {
        error = thrown;
      }
      expect(error, JSON.stringify(change)).toMatchObject({ code: "invalid_request", status: 400, param });
    };
    submit({ messages: undefined }, "messages");
    submit({ prompt: "both" }, "messages");
    submit({ messages: 5 }, "messages");
    submit({ maxTokens: -2 }, "maxTokens");
    submit({ maxTokens: 1.5 }, "maxTokens");
    submit({ maxTokens: Number.NaN }, "maxTokens");
    submit({ stop: [""] }, "stop");
    submit({ stop: "x" }, "stop");
    for (const row of samplingOptions) {
      submit({ sampling: { ...sampling, [row.name]: Number.NaN } }, row.name);
      submit({ sampling: { ...sampling, [row.name]: "1" } }, row.name);
      submit({ sampling: { ...sampling, [row.name]: undefined } }, row.name);
    }
    submit({ sampling: { ...sampling, repeat_penalty: 0 } }, "repeat_penalty");
    submit({ sampling: { ...sampling, frequency_penalty: Number.POSITIVE_INFINITY } }, "frequency_penalty");
    submit({ sampling: { ...sampling, repeat_last_n: -2 } }, "repeat_last_n");
    submit({ sampling: { ...sampling, logit_bias: new Float64Array([1]) } }, "logit_bias");
    submit({ sampling: { ...sampling, logit_bias: new Float64Array([-1, 1]) } }, "logit_bias");
    submit({ sampling: { ...sampling, logit_bias: new Float64Array([1, Number.NaN]) } }, "logit_bias");
    submit({ sampling: { ...sampling, logit_bias: [1, 2] } }, "logit_bias");
    expect(() => engine.submit(undefined as never)).toThrow();
    expect(() =>
      engine.submit({
        ...request,
        get messages(): string {
          throw new Error("getter");
        },
      }),
    ).toThrow("getter");
  });

  it("fails a request whose token ids the vocabulary lacks, as an event", async () => {
    const id = engine.submit({ ...request, sampling: { ...sampling, logit_bias: new Float64Array([99999, 1]) } });
    let failed: number[] | undefined;
    while (failed === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      failed = heard.records.find(([request_, , kind]) => request_ === id && kind === 3);
    }
    expect(heard.text).toContain('"param":"logit_bias"');
  });

  it("refuses load options out of range", () => {
    const load = (change: object, param: string) => {
      let error: unknown;
      try {
        addon.loadModel({ ...(loadOptions as object), ...change } as never, () => undefined, undefined);
      } catch (thrown) {
        error = thrown;
      }
      expect(error, JSON.stringify(change)).toMatchObject({ code: "invalid_request", param });
    };
    load({ model: 1 }, "model");
    load({ parallel: 0 }, "parallel");
    load({ parallel: 257 }, "parallel");
    load({ contextSize: -1 }, "contextSize");
    load({ batchSize: 0.5 }, "batchSize");
    load({ stepTargetMs: Number.NaN }, "stepTargetMs");
    load({ mmap: "yes" }, "mmap");
    load({ flashAttention: "maybe" }, "flashAttention");
    expect(() => addon.loadModel(loadOptions, undefined as never, undefined)).toThrow("onEvents");
  });

  it("ignores a cancel of what is not live, and survives any this", () => {
    engine.cancel(123456);
    engine.cancel("x" as never);
    const { stats, submit } = engine;
    expect(stats().cells).toBe(256);
    expect(() => submit.call(null, {} as never)).toThrow();
  });
});
