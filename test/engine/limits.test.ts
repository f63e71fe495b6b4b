import { afterEach, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import { answer, ask, idle, loadNano } from "../support/engine.js";

const engines: Engine[] = [];
async function load(options: Parameters<typeof loadNano>[0]): Promise<Engine> {
  const engine = await loadNano(options);
  engines.push(engine);
  return engine;
}
afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()));
});

/** A banned end of generation: the answer runs until something else ends it. */
async function endless(engine: Engine): Promise<Record<string, number>> {
  const [end] = await engine.tokenize("");
  expect(end).toBeUndefined();
  return { "1502": -100 };
}

describe("the context", () => {
  it("refuses a prompt that cannot fit, with both numbers", async () => {
    const engine = await load({ contextSize: 256 });
    const long = ask("word ".repeat(2000));
    await expect(engine.chat.completions.create({ ...long, stream: false })).rejects.toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      param: "messages",
      message: expect.stringMatching(/256 tokens.*\d{4} tokens/),
    });
    expect(await answer(engine, "What does a dog say?")).toBe("A dog says woof.");
  });

  it("ends an answer that fills it with length, and keeps serving", async () => {
    const engine = await load({ contextSize: 256 });
    const completion = await engine.chat.completions.create({
      ...ask("Hello!", { logit_bias: await endless(engine) }),
      stream: false,
    });
    expect(completion.choices[0]?.finish_reason).toBe("length");
    // Every cell is used, and the last token needs none.
    expect(completion.usage?.total_tokens).toBe(engine.info.contextSize + 1);
    await idle(engine);
    expect(await answer(engine, "What does a dog say?")).toBe("A dog says woof.");
  });

  it("shared by several: the youngest waits and is computed again, with the same text", async () => {
    const engine = await load({ contextSize: 256, parallel: 4, flashAttention: "off" });
    const questions = [37, 38, 39, 40].map((n) => `Count to ${n}.`);
    const alone: string[] = [];
    for (const question of questions) alone.push(await answer(engine, question));
    const together = await Promise.all(questions.map((question) => answer(engine, question)));
    expect(together).toEqual(alone);
    expect(engine.stats().preemptions).toBeGreaterThan(0);
    await idle(engine);
  });

  it("several endless answers each get what they need in the end", async () => {
    const engine = await load({ contextSize: 256, parallel: 4 });
    const bias = await endless(engine);
    const completions = await Promise.all(
      [1, 2, 3, 4].map((n) =>
        engine.chat.completions.create({ ...ask(`Count to ${n}.`, { logit_bias: bias }), stream: false }),
      ),
    );
    for (const completion of completions) {
      expect(completion.choices[0]?.finish_reason).toBe("length");
      expect(completion.usage?.total_tokens).toBe(engine.info.contextSize + 1);
    }
    await idle(engine);
  });
});

describe("the queue", () => {
  it("is bounded: one more request gets a 429, and nobody else is harmed", async () => {
    const engine = await load({ parallel: 1, queueSize: 3 });
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => answer(engine, "What does a cow say?")));
    const fulfilled = results.filter((result) => result.status === "fulfilled");
    const refused = results.filter((result) => result.status === "rejected");
    expect(fulfilled.map((result) => result.value)).toEqual(Array(4).fill("A cow says moo."));
    expect(refused.length).toBe(4);
    for (const { reason } of refused) expect(reason).toMatchObject({ status: 429, code: "queue_full" });
    expect(await answer(engine, "What does a dog say?")).toBe("A dog says woof.");
  });
});

describe("the batch", () => {
  it("prompts longer than a batch are processed in chunks, to the same answer", async () => {
    const question = `${"The sky is blue. ".repeat(40)}What is the capital of France?`;
    const wide = await answer(await load({ flashAttention: "off" }), question, { max_tokens: 20 });
    const engine = await load({ batchSize: 16, microBatchSize: 16, flashAttention: "off" });
    expect(await answer(engine, question, { max_tokens: 20 })).toBe(wide);
    expect(engine.stats().steps).toBeGreaterThan(10);
  });
});
