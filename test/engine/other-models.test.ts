import { afterEach, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import type { LoadOptions } from "../../src/load-options.js";
import { ensureOther, type OtherPreset } from "../models/other.js";
import { answer, ask, idle } from "../support/engine.js";

const open: Engine[] = [];
afterEach(() => Promise.all(open.splice(0).map((engine) => engine.close())));

async function load(preset: OtherPreset, options: Partial<LoadOptions> = {}): Promise<Engine> {
  // Exact attention: random weights know no word for sure, so every rounding would show.
  const fixed = { threads: 1, contextSize: 2048, flashAttention: "off" } as const;
  const engine = await Engine.load({ model: ensureOther(preset), ...fixed, ...options });
  open.push(engine);
  return engine;
}

// Longer than the window of the sliding one, so that what has left it matters.
const system = `You are a helpful assistant. ${"The dog likes the cat, and the cat likes the cow. ".repeat(8)}`;
const questions = ["What does a dog say?", "What does a cat say?", "Where is the cow?", "Who likes the dog?"];

async function said(engine: Engine, question: string, more: object = {}) {
  const messages = [
    { role: "system" as const, content: system },
    { role: "user" as const, content: question },
  ];
  const body = { messages, temperature: 0, max_tokens: 24, logprobs: true, ...more, stream: false as const };
  const completion = await engine.chat.completions.create(body);
  const choice = completion.choices[0];
  return {
    text: choice?.message.content ?? "",
    logprobs: (choice?.logprobs?.content ?? []).map(({ logprob }) => logprob),
    cached: completion.usage?.prompt_tokens_details?.cached_tokens ?? 0,
  };
}

/** The same words, as sure as before: up to the place where the two best were as good as each other. */
function expectSame(got: Awaited<ReturnType<typeof said>>, alone: Awaited<ReturnType<typeof said>>, what: string) {
  const shared = Math.min(got.logprobs.length, alone.logprobs.length);
  let same = 0;
  while (same < shared && Math.abs((got.logprobs[same] ?? 0) - (alone.logprobs[same] ?? 0)) < 0.02) same++;
  // Random weights are unsure of everything; a state that is not its own shows at once, at the first tokens.
  expect(same, `${what}: ${got.text} | ${alone.text}`).toBeGreaterThanOrEqual(Math.min(6, alone.logprobs.length));
}

describe.each(["sliding-window", "recurrent", "hybrid"] as const)("a %s model", (preset) => {
  it("gives each request what it gets alone, after others and beside them", async () => {
    const alone = [];
    for (const question of questions) {
      const engine = await load(preset, { parallel: 1, prefixCache: false });
      alone.push(await said(engine, question));
      await engine.close();
    }
    expect(new Set(alone.map(({ logprobs }) => logprobs[0])).size).toBe(questions.length);
    const engine = await load(preset, { parallel: 4 });
    for (let round = 0; round < 3; round++) {
      for (const [i, question] of questions.entries()) {
        const got = await said(engine, question);
        expectSame(got, alone[i] as never, `one after the other, round ${round}`);
        // Cells can be shared where they can be cut; the state of the others is computed anew.
        if (preset !== "sliding-window") expect(got.cached).toBe(0);
        else if (round > 0) expect(got.cached).toBeGreaterThan(100);
      }
      const together = await Promise.all(questions.map((question) => said(engine, question)));
      for (const [i, got] of together.entries()) expectSame(got, alone[i] as never, `together, round ${round}`);
    }
    await idle(engine);
  });

  it("survives cancels, a full cache, n, and priorities", async () => {
    const engine = await load(preset, { parallel: 2, contextSize: 512 });
    const whole = await said(engine, "What does a dog say?");
    const word = "x".repeat(60);
    const grammar = `root ::= "${word}"`;
    for (let round = 0; round < 4; round++) {
      const controller = new AbortController();
      const cancelled = engine.chat.completions.create(
        { ...ask("Count."), stream: false },
        { signal: controller.signal },
      );
      setTimeout(() => controller.abort(), 3 * round);
      const texts = Promise.all(
        [0, 1, 2, 3].map((priority) => answer(engine, `Sing ${priority}. ${system}`, { grammar, priority })),
      );
      await cancelled.catch((error: unknown) => expect(error).toMatchObject({ name: "AbortError" }));
      expect(await texts).toEqual(Array(4).fill(word));
    }
    const { choices } = await engine.chat.completions.create({ ...ask("Sing."), n: 3, grammar, stream: false });
    expect(choices.map(({ message }) => message.content)).toEqual([word, word, word]);
    await idle(engine);
    expectSame(await said(engine, "What does a dog say?"), whole, "afterwards");
  });

  it("takes a beginning from another answer only while all that it looks back on is there", async () => {
    const alone = await load(preset, { parallel: 1, prefixCache: false });
    const expected = await said(alone, "Where is the cow?");
    await alone.close();
    const engine = await load(preset, { parallel: 4 });
    // Cells in front of those that will be kept, until they are.
    const controller = new AbortController();
    const front = await engine.chat.completions.create(
      { ...ask(system, { cache_prompt: false }), grammar: "root ::= [a-z ] root", stream: true },
      { signal: controller.signal },
    );
    await front[Symbol.asyncIterator]().next();
    await said(engine, "Where is the dog? ".repeat(12));
    controller.abort();
    await idle(engine);
    // llama.cpp puts this one also where cells of the kept answer have left its window: there the common beginning ends.
    await answer(engine, "the sun and the moon, ".repeat(60), { cache_prompt: false, max_tokens: 1 });
    const got = await said(engine, "Where is the cow?");
    expectSame(got, expected, `${got.cached} cached`);
    // And once more, from the one just computed.
    expectSame(await said(engine, "Where is the cow?"), expected, "again");
  });

  it("guesses ahead only where a wrong guess can be taken back, and says what cannot be saved", async () => {
    const engine = await load(preset, { draftTokens: 8 });
    const song = "the dog and the cow, ".repeat(12);
    expect(await answer(engine, "Sing.", { grammar: `root ::= "${song}"` })).toBe(song);
    if (preset === "sliding-window") expect(engine.stats().acceptedTokens).toBeGreaterThan(0);
    else expect(engine.stats().draftedTokens).toBe(0);
    await expect(engine.savePrefix("", "/nowhere")).rejects.toMatchObject({ code: "unsupported_model", status: 400 });
  });
});
