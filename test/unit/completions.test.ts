import { describe, expect, it } from "vitest";
import type { CompletionChunk, CompletionCreateParams } from "../../src/openai/completion-params.js";
import type { ScriptedOptions } from "../../src/testing/index.js";
import { rejection, scripted, tick } from "../support/scripted-engine.js";

const pieces = ["One", " two", " three"];
const byPrompt: ScriptedOptions["script"] = ({ prompt }) => ({ pieces: [`${prompt}:`, "x"] });

async function streamed(script: ScriptedOptions["script"], params: CompletionCreateParams): Promise<CompletionChunk[]> {
  const { engine } = await scripted({ ...(script === undefined ? {} : { script }) });
  const chunks: CompletionChunk[] = [];
  for await (const chunk of await engine.completions.create({ ...params, stream: true })) chunks.push(chunk);
  return chunks;
}

describe("a text completion", () => {
  it("goes on from the prompt as it is", async () => {
    const { engine, native } = await scripted({ script: { pieces } });
    const answer = await engine.completions.create({ prompt: "Count:", temperature: 0.5 });
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^cmpl-[0-9a-f]{32}$/),
      object: "text_completion",
      model: "Scripted Model",
      choices: [{ index: 0, text: "One two three", logprobs: null, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 },
    });
    expect(native.requests[0]).toMatchObject({ prompt: "Count:", maxTokens: 16, sampling: { temperature: 0.5 } });
    expect(native.requests[0]).not.toHaveProperty("messages");
    await engine.completions.create({ prompt: [5, 6], max_tokens: 1 });
    expect(native.requests[1]).toMatchObject({ promptTokens: Int32Array.of(5, 6), maxTokens: 1 });
  });

  it("numbers the answers to several prompts in their order, and adds up their usage", async () => {
    const { engine } = await scripted({ script: byPrompt });
    const answer = await engine.completions.create({ prompt: ["a", "b"], n: 2 });
    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, "a:x"],
      [1, "a:x"],
      [2, "b:x"],
      [3, "b:x"],
    ]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 });
  });

  it("streams the same", async () => {
    const chunks = await streamed(byPrompt, { prompt: ["a", "b"], stream_options: { include_usage: true } });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const texts = ["", ""];
    const reasons: (string | null)[] = [];
    for (const { index, text, finish_reason } of chunks.flatMap(({ choices }) => choices)) {
      texts[index] += text;
      if (finish_reason !== null) reasons.push(finish_reason);
    }
    expect([texts, reasons]).toEqual([
      ["a:x", "b:x"],
      ["stop", "stop"],
    ]);
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 24 } });
    expect((await streamed({ pieces }, { prompt: "a" })).every((chunk) => !("usage" in chunk))).toBe(true);
  });

  it("echoes the prompt first", async () => {
    const { engine } = await scripted({ script: { pieces } });
    const texts = async (params: CompletionCreateParams) =>
      (await engine.completions.create({ ...params, stream: false })).choices.map(({ text }) => text);
    expect(await texts({ prompt: "Count: ", echo: true })).toEqual(["Count: One two three"]);
    expect(await texts({ prompt: [67, 58], echo: true, n: 2 })).toEqual(["C:One two three", "C:One two three"]);
    expect(await texts({ prompt: "Count: ", echo: true, max_tokens: 0 })).toEqual(["Count: "]);
  });

  it("has logprobs in the old lists", async () => {
    const { engine } = await scripted({ script: { pieces: ["é", "🦊", "b"] } });
    const logprobs = async (count: number) =>
      (await engine.completions.create({ prompt: "x", logprobs: count })).choices[0]?.logprobs;
    const ln2 = -Math.LN2;
    expect(await logprobs(2)).toEqual({
      tokens: ["é", "🦊", "b"],
      token_logprobs: [ln2, ln2, ln2],
      top_logprobs: ["é", "🦊", "b"].map((token) => ({ [token]: ln2, [`${token}~1`]: 2 * ln2 })),
      text_offset: [0, 1, 2],
    });
    expect(await logprobs(0)).toMatchObject({ tokens: ["é", "🦊", "b"], top_logprobs: null });
  });

  it.each([
    [{}, "prompt"],
    [{ prompt: null }, "prompt"],
    [{ prompt: 5 }, "prompt"],
    [{ prompt: [] }, "prompt"],
    [{ prompt: [[]] }, "prompt"],
    [{ prompt: ["a", 5] }, "prompt"],
    [{ prompt: [-1] }, "prompt"],
    [{ prompt: Array(129).fill("a") }, "prompt"],
    [{ prompt: "a", suffix: "b" }, "suffix"],
    [{ prompt: "a", best_of: 2 }, "best_of"],
    [{ prompt: "a", echo: 1 }, "echo"],
    [{ prompt: "a", echo: true, logprobs: 1 }, "echo"],
    [{ prompt: "a", logprobs: true }, "logprobs"],
    [{ prompt: "a", logprobs: 21 }, "logprobs"],
    [{ prompt: "a", max_tokens: 0 }, "max_tokens"],
    [{ prompt: "a", messages: [] }, "messages"],
    [{ prompt: "a", tools: [] }, "tools"],
    [{ prompt: "a", temperature: 3 }, "temperature"],
    [{ prompt: "a", stop: ["1", "2", "3", "4", "5"] }, "stop"],
    [{ prompt: "a", stream_options: {} }, "stream_options"],
    [{ prompt: "a", promt: 1 }, "promt"],
  ])("refuses %j", async (params, param) => {
    const { engine, native } = await scripted();
    expect(await rejection(engine.completions.create(params as CompletionCreateParams))).toMatchObject({
      status: 400,
      param,
    });
    expect(native.requests).toHaveLength(0);
  });

  it("is all or nothing where the queue is full", async () => {
    const refuse = { code: "queue_full", status: 429, param: null, message: "full" };
    const { engine, native } = await scripted({
      script: (_, nth) => (nth === 1 ? { refuse } : { pieces, hang: "decoding" }),
    });
    expect(await rejection(engine.completions.create({ prompt: ["a", "b", "c"] }))).toMatchObject({ status: 429 });
    expect([native.live, native.requests.length]).toEqual([0, 2]);
  });

  it("ends with its first failure, and ends the others", async () => {
    const failure = { code: "decode_failed", status: 500, param: null, message: "broken" };
    const { engine, native } = await scripted({
      script: (_, nth) => (nth === 1 ? { pieces, failAfter: { pieces: 1, failure } } : { pieces, hang: "decoding" }),
    });
    expect(await rejection(engine.completions.create({ prompt: ["a", "b"] }))).toMatchObject({ code: "decode_failed" });
    expect(native.live).toBe(0);
  });

  it("can be aborted and left", async () => {
    const { engine, native } = await scripted({ script: { pieces, hang: "decoding" } });
    const controller = new AbortController();
    const aborted = rejection(engine.completions.create({ prompt: ["a", "b"] }, { signal: controller.signal }));
    await tick(10);
    controller.abort();
    expect(await aborted).toMatchObject({ name: "AbortError" });
    for await (const _ of await engine.completions.create({ prompt: ["a", "b"], stream: true })) break;
    expect(native.live).toBe(0);
  });
});
