import { describe, expect, it } from "vitest";
import { RateLimitError } from "../../src/errors.js";
import type { ChatCompletionCreateParamsNonStreaming } from "../../src/openai/params.js";
import { type ScriptedOptions, scriptedEngine } from "../../src/testing/index.js";
import { hi, rejection } from "../support/scripted-engine.js";

async function ask(script: ScriptedOptions["script"], more: Partial<ChatCompletionCreateParamsNonStreaming> = {}) {
  const { engine } = await scriptedEngine(script === undefined ? {} : { script });
  const answer = await engine.chat.completions.create({ ...hi, ...more });
  await engine.close();
  return { ...answer, text: answer.choices[0]?.message.content, finish: answer.choices[0]?.finish_reason };
}

describe("tokenloop/testing", () => {
  it("answers with a text, a script, or what a function makes of the request", async () => {
    expect(await ask("Two words.")).toMatchObject({ text: "Two words.", finish: "stop" });
    expect((await ask("Two words.")).usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 2 });
    expect(await ask({ pieces: ["a", "b"], finish: "length" })).toMatchObject({ text: "ab", finish: "length" });
    expect(await ask(({ messages }, nth) => `${nth}: ${messages?.[0]?.content}`)).toMatchObject({ text: "0: hi" });
    expect(await ask(undefined)).toMatchObject({ text: "", finish: "stop" });
  });

  it("keeps the request's limits", async () => {
    const pieces = ["one ", "two ", "three"];
    expect(await ask({ pieces }, { max_tokens: 2 })).toMatchObject({ text: "one two ", finish: "length" });
    expect(await ask({ pieces }, { max_tokens: 3 })).toMatchObject({ text: "one two three", finish: "stop" });
    expect(await ask({ pieces }, { stop: "wo t" })).toMatchObject({ text: "one t", finish: "stop" });
    expect((await ask({ pieces }, { stop: "wo t" })).usage.completion_tokens).toBe(3);
    expect(await ask({ pieces }, { n: 2 })).toMatchObject({ choices: [{ index: 0 }, { index: 1 }] });
  });

  it("has logprobs that belong to its tokens", async () => {
    const { choices } = await ask({ pieces: ["é", "b"] }, { logprobs: true, top_logprobs: 3 });
    const entries = choices[0]?.logprobs?.content ?? [];
    expect(entries.map(({ token }) => token)).toEqual(["é", "b"]);
    expect(entries[0]?.bytes).toEqual([0xc3, 0xa9]);
    for (const { logprob, top_logprobs } of entries) {
      expect(top_logprobs).toHaveLength(3);
      expect(top_logprobs[0]?.logprob).toBe(logprob);
      const total = top_logprobs.reduce((sum, entry) => sum + Math.exp(entry.logprob), 0);
      expect(total).toBeLessThanOrEqual(1);
    }
  });

  it("validates as an engine does, fails as told, and says what it was asked", async () => {
    const failure = { code: "queue_full", status: 429, param: null, message: "full" };
    const { engine, native } = await scriptedEngine({ script: { refuse: failure } });
    expect(await rejection(engine.chat.completions.create(hi))).toBeInstanceOf(RateLimitError);
    expect(await rejection(engine.chat.completions.create({ messages: [] }))).toMatchObject({ status: 400 });
    expect(native.requests).toHaveLength(1);
    expect(await rejection(scriptedEngine({}, { parallel: 0 }))).toMatchObject({ param: "parallel" });
  });

  it("passes time as told", async () => {
    const start = performance.now();
    await ask({ pieces: ["a", "b"], delay: 20 });
    expect(performance.now() - start).toBeGreaterThan(50);
  });
});
