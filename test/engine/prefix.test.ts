import { afterEach, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import type { ChatCompletionCreateParams } from "../../src/openai/params.js";
import { answer, ask, idle, loadNano } from "../support/engine.js";

const engines: Engine[] = [];
async function load(options: Parameters<typeof loadNano>[0] = {}): Promise<Engine> {
  const engine = await loadNano(options);
  engines.push(engine);
  return engine;
}
afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()));
});

const rules = "You are Nano. Answer in one short sentence. ".repeat(8);
const withRules = (question: string, more: Partial<ChatCompletionCreateParams> = {}) => ({
  messages: [
    { role: "system" as const, content: rules },
    { role: "user" as const, content: question },
  ],
  temperature: 0,
  max_tokens: 12,
  ...more,
});

async function usage(engine: Engine, params: ChatCompletionCreateParams) {
  const completion = await engine.chat.completions.create({ ...params, stream: false });
  const { prompt_tokens = 0, prompt_tokens_details } = completion.usage ?? {};
  return {
    text: completion.choices[0]?.message.content ?? "",
    prompt: prompt_tokens,
    cached: prompt_tokens_details?.cached_tokens ?? -1,
  };
}

/** Tokens that two prompts have in common at their beginning. */
async function common(engine: Engine, a: string, b: string): Promise<number> {
  const prompts = await Promise.all(
    [a, b].map(async (question) => engine.tokenize(await engine.applyTemplate(withRules(question).messages))),
  );
  const [first = new Int32Array(), second = new Int32Array()] = prompts;
  return first.findIndex((token, i) => token !== second[i]);
}

describe("prefix reuse", () => {
  it("computes a common prefix once, and counts exactly", async () => {
    const engine = await load();
    const first = await usage(engine, withRules("What does a dog say?"));
    expect(first.cached).toBe(0);
    const before = engine.stats().promptTokens;
    const second = await usage(engine, withRules("Which day comes after Monday?"));
    expect(second.cached).toBeGreaterThan(60);
    expect(engine.stats().promptTokens - before).toBe(second.prompt - second.cached);
    // Tokens are counted from the text, control tokens as text: the same number on both sides of the first difference.
    expect(second.cached).toBeLessThanOrEqual(
      await common(engine, "What does a dog say?", "Which day comes after Monday?"),
    );
    // The same again: all but the one token whose logits are wanted.
    const again = await usage(engine, withRules("What does a dog say?"));
    expect(again.cached).toBe(again.prompt - 1);
    expect(again.text).toBe(first.text);
  });

  it("goes on from an earlier answer in the next turn", async () => {
    const engine = await load();
    const messages = [{ role: "user" as const, content: `${rules}My name is Olga and I have a red kite.` }];
    const first = await engine.chat.completions.create({ messages, temperature: 0, stream: false });
    const reply = first.choices[0]?.message.content ?? "";
    const second = await usage(engine, {
      messages: [...messages, { role: "assistant", content: reply }, { role: "user", content: "What do I have?" }],
      temperature: 0,
    });
    // The first prompt and the whole answer.
    expect(second.cached).toBeGreaterThanOrEqual((first.usage?.total_tokens ?? 0) - 2);
  });

  it("gives the answers that are given without it", async () => {
    const [engine, plain] = [
      await load({ flashAttention: "off" }),
      await load({ flashAttention: "off", prefixCache: false }),
    ];
    const questions = [
      "What does a dog say?",
      "What is the capital of Peru?",
      "Hello!",
      "How many days are in a week?",
    ];
    for (const question of [...questions, ...questions]) {
      expect((await usage(engine, withRules(question))).text).toBe((await usage(plain, withRules(question))).text);
    }
    expect(plain.stats()).toMatchObject({ cachedTokens: 0, cellsCached: 0 });
  });

  it("many that begin alike and arrive together compute the beginning once", async () => {
    const engine = await load({ parallel: 8 });
    const questions = ["one", "two", "three", "four", "five", "six", "seven", "eight"].map((word) => `Say: ${word}`);
    const answers = await Promise.all(questions.map((question) => usage(engine, withRules(question))));
    const whole = answers.reduce((sum, { prompt }) => sum + prompt, 0);
    const cached = answers.reduce((sum, { cached }) => sum + cached, 0);
    expect(answers.filter(({ cached }) => cached === 0).length).toBe(1);
    expect(engine.stats().promptTokens).toBe(whole - cached);
    const prefix = await common(engine, "Say: one", "Say: two");
    // One prefix and eight tails; a tail is what follows "Say: ".
    expect(engine.stats().promptTokens).toBeLessThan(prefix + 8 * 16);
  });

  it("n answers share one prompt, and draw with the seeds that follow", async () => {
    const engine = await load({ flashAttention: "off" });
    const warm = { temperature: 1.5, top_k: 3, top_p: 1, min_p: 0, seed: 100, max_tokens: 20 };
    const completion = await engine.chat.completions.create({
      ...withRules("Tell me a story about a fox.", warm),
      n: 4,
      stream: false,
    });
    const texts = completion.choices.map(({ message }) => message.content);
    expect(new Set(texts).size).toBeGreaterThan(1);
    // One whole prompt; three times the one token whose logits are wanted.
    const { prompt_tokens = 0, prompt_tokens_details } = completion.usage ?? {};
    expect(prompt_tokens_details?.cached_tokens).toBe(0);
    expect(engine.stats().promptTokens).toBe(prompt_tokens + 3);
    for (const [i, text] of texts.entries()) {
      const alone = await usage(engine, withRules("Tell me a story about a fox.", { ...warm, seed: 100 + i }));
      expect(alone.text).toBe(text);
    }
  });

  it("n answers are cancelled together, in every state", async () => {
    const engine = await load({ parallel: 3 });
    for (let round = 0; round < 30; round++) {
      const controller = new AbortController();
      const params = { ...withRules("Count to 40.", { max_tokens: 500, logit_bias: { "1502": -100 } }), n: 5 };
      const promise = engine.chat.completions.create(params, { signal: controller.signal });
      setTimeout(() => controller.abort(round), round);
      await expect(promise).rejects.toMatchObject({ name: "AbortError", cause: round });
      expect(engine.stats()).toMatchObject({ queued: 0, sequences: 0, cellsUsed: 0 });
    }
    expect(engine.stats().cancelled).toBe(150);
  });

  it("never crosses from one key to another", async () => {
    const engine = await load();
    const question = "What does a dog say?";
    const a = await usage(engine, withRules(question, { prompt_cache_key: "a" }));
    const b = await usage(engine, withRules(question, { prompt_cache_key: "b" }));
    const none = await usage(engine, withRules(question));
    expect([a.cached, b.cached, none.cached]).toEqual([0, 0, 0]);
    const again = await usage(engine, withRules(question, { prompt_cache_key: "a" }));
    expect(again.cached).toBe(again.prompt - 1);
  });

  it("can be left out by a request, for reading and for writing", async () => {
    const engine = await load();
    const question = "What does a dog say?";
    await usage(engine, withRules(question, { cache_prompt: false }));
    await idle(engine);
    expect(engine.stats().cellsCached).toBe(0);
    await usage(engine, withRules(question));
    expect((await usage(engine, withRules(question, { cache_prompt: false }))).cached).toBe(0);
  });

  it("gives its cells away when they are needed, the least recently used first", async () => {
    const engine = await load({ contextSize: 512, parallel: 2 });
    const numbered = (n: number) => ask(`${n}. ${"The sky is blue. ".repeat(20)}`, { max_tokens: 4 });
    for (let n = 0; n < 12; n++) {
      const { prompt } = await usage(engine, numbered(n));
      expect(prompt).toBeGreaterThan(90);
      const { cells, cellsCached, cellsUsed } = engine.stats();
      expect(cellsCached + cellsUsed).toBeLessThanOrEqual(cells);
    }
    expect(engine.stats().evictions).toBeGreaterThan(0);
    expect((await usage(engine, numbered(11))).cached).toBeGreaterThan(0);
    expect((await usage(engine, numbered(0))).cached).toBe(0);
    // A request that needs every cell gets every cell.
    const all = await engine.chat.completions.create({
      ...ask("Hello!", { logit_bias: { "1502": -100 } }),
      stream: false,
    });
    expect(all.usage?.total_tokens).toBe(engine.info.contextSize + 1);
  });

  it("a cancelled request leaves nothing, and what it shared stays", async () => {
    const engine = await load();
    await usage(engine, withRules("What does a dog say?"));
    await idle(engine);
    const kept = engine.stats().cellsCached;
    const endless = (round: number) =>
      ({ ...withRules(`Say: ${round}`, { max_tokens: 500, logit_bias: { "1502": -100 } }), stream: true }) as const;
    for (let round = 0; round < 20; round++) {
      for await (const _ of await engine.chat.completions.create(endless(round))) break;
      await idle(engine);
      expect(engine.stats().cellsCached).toBe(kept);
    }
    expect(await answer(engine, "What does a dog say?")).toBe("A dog says woof.");
  });
});
