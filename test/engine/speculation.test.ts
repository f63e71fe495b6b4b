import { describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import { nanoModel } from "../models/nano.js";
import { ensureModel } from "../models/qwen3.js";
import { answer, ask, idle, knownAnswers, loadNano } from "../support/engine.js";

async function using<T>(options: Parameters<typeof loadNano>[0], body: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = await loadNano({ contextSize: 2048, ...options });
  try {
    return await body(engine);
  } finally {
    await idle(engine);
    await engine.close();
  }
}

// What is compared token by token must not depend on rounding, so it runs alone: nano's stories at temperature 0.9, eight
// at a time, differ in 13 of 60 without any draft.
const exact = { flashAttention: "off", prefixCache: false, parallel: 1 } as const;
const repeating = `root ::= "${"the dog and the cat and the cow, ".repeat(24)}"`;

describe("speculative decoding with n-grams", () => {
  it("gives the same text, at temperature 0 and above it", async () => {
    const prompts = [
      ...knownAnswers()
        .slice(0, 8)
        .map(({ messages }) => messages),
      ...["dog", "cat", "boat"].map((word) => [{ role: "user", content: `Tell me a story about a ${word}.` }]),
    ];
    const texts = (engine: Engine, temperature: number) =>
      Promise.all(
        prompts.map(async (messages, seed) => {
          const body = { messages: messages as never, temperature, seed, max_tokens: 150 };
          return (await engine.chat.completions.create(body)).choices[0]?.message.content;
        }),
      );
    for (const temperature of [0, 0.9]) {
      const plain = await using(exact, (engine) => texts(engine, temperature));
      const drafted = await using({ ...exact, draftTokens: 8 }, async (engine) => {
        const result = await texts(engine, temperature);
        expect(engine.stats().draftedTokens).toBeGreaterThan(0);
        return result;
      });
      expect(drafted).toEqual(plain);
    }
  });

  it("takes fewer steps where a text repeats itself, and says how many guesses were right", async () => {
    const [plain, drafted] = await Promise.all(
      [0, 16].map((draftTokens) =>
        using({ draftTokens }, async (engine) => {
          const completion = await engine.chat.completions.create({
            ...ask("Sing."),
            grammar: repeating,
            stream: false,
          });
          return { completion, stats: engine.stats() };
        }),
      ),
    );
    if (plain === undefined || drafted === undefined) throw new Error("unreachable");
    expect(drafted.completion.choices[0]?.message.content).toBe(plain.completion.choices[0]?.message.content);
    expect(drafted.stats.steps).toBeLessThan(plain.stats.steps / 2);
    const { draft_n = 0, draft_n_accepted = 0 } = drafted.completion.timings ?? {};
    expect(draft_n_accepted).toBeGreaterThan(draft_n / 2);
    expect(draft_n).toBeGreaterThanOrEqual(draft_n_accepted);
    expect(drafted.stats).toMatchObject({ draftedTokens: draft_n, acceptedTokens: draft_n_accepted });
    expect(plain.completion.timings).not.toHaveProperty("draft_n");
  });

  it("goes with logprobs, n, stop strings, limits and cancellation", async () => {
    await using({ draftTokens: 16 }, async (engine) => {
      const song = "the dog and the cat and the cow, ".repeat(24);
      const completion = await engine.chat.completions.create({
        ...ask("Sing."),
        grammar: repeating,
        n: 3,
        logprobs: true,
        top_logprobs: 2,
        stream: false,
      });
      for (const { message, logprobs } of completion.choices) {
        expect(message.content).toBe(song);
        expect(logprobs?.content.map(({ token }) => token).join("")).toBe(song);
      }
      for (let max_tokens = 60; max_tokens < 75; max_tokens++) {
        const cut = await engine.chat.completions.create({
          ...ask("Sing."),
          grammar: repeating,
          max_tokens,
          stream: false,
        });
        expect(cut.usage?.completion_tokens).toBe(max_tokens);
        expect(song.startsWith(cut.choices[0]?.message.content ?? "?")).toBe(true);
        const stopped = await answer(engine, "Sing.", {
          grammar: repeating,
          stop: "cat and the c".slice(0, max_tokens - 58),
        });
        expect(song.startsWith(stopped)).toBe(true);
      }
      const stream = await engine.chat.completions.create({ ...ask("Sing."), grammar: repeating, stream: true });
      let chunks = 0;
      for await (const _ of stream) if (++chunks === 20) break;
      await idle(engine);
      // What was kept is the text's own: a second turn finds it, and goes on right.
      expect(await answer(engine, "Sing.", { grammar: repeating })).toBe(song);
    });
  });

  it("survives a cache that is nearly full", async () => {
    await using({ draftTokens: 16, contextSize: 256, parallel: 3 }, async (engine) => {
      const song = "la ".repeat(120);
      const texts = await Promise.all(
        Array.from({ length: 3 }, () => answer(engine, "Sing.", { grammar: `root ::= "${song}"` })),
      );
      for (const text of texts) expect(song.startsWith(text)).toBe(true);
      expect(texts.some((text) => text.length > 100)).toBe(true);
    });
  });
});

describe("speculative decoding with a draft model", () => {
  it("gives the same text in far fewer steps when the draft model is right", async () => {
    const prompts = ["dog", "cat", "boat", "cow"].map((word) => `Tell me a story about a ${word}.`);
    const run = (options: Parameters<typeof loadNano>[0], temperature: number) =>
      using({ ...exact, ...options }, async (engine) => {
        const texts = await Promise.all(
          prompts.map((prompt, seed) => answer(engine, prompt, { temperature, seed, max_tokens: 80 })),
        );
        return { texts, stats: engine.stats() };
      });
    // A model agrees with itself, but for rounding.
    const draft = { draftModel: nanoModel(), draftTokens: 6 };
    const [plain, drafted] = [await run({}, 0), await run(draft, 0)];
    expect(drafted.texts).toEqual(plain.texts);
    expect(drafted.stats.acceptedTokens).toBeGreaterThan(0.9 * drafted.stats.draftedTokens);
    expect(drafted.stats.steps).toBeLessThan(plain.stats.steps / 2);
    // Above temperature 0 it is wrong more often, and the text is still the same.
    const [warm, warmDrafted] = [await run({}, 1), await run(draft, 1)];
    expect(warmDrafted.texts).toEqual(warm.texts);
    expect(warmDrafted.stats.acceptedTokens).toBeGreaterThan(0);
    expect(warmDrafted.stats.acceptedTokens).toBeLessThan(warmDrafted.stats.draftedTokens);
  });

  it("follows prompts beside running answers, more answers than sequences, and a full cache", async () => {
    const options = { draftModel: nanoModel(), draftTokens: 4, contextSize: 512, parallel: 2 };
    await using(options, async (engine) => {
      const long = `${"The dog likes the cat. ".repeat(15)}What does a dog say?`;
      const word = "woof ".repeat(20);
      const texts = await Promise.all(
        Array.from({ length: 6 }, () => answer(engine, long, { grammar: `root ::= "${word}"` })),
      );
      expect(texts).toEqual(Array(6).fill(word));
      expect(engine.stats().draftedTokens).toBeGreaterThan(0);
      const controller = new AbortController();
      const body = { ...ask("Sing."), grammar: repeating };
      const cancelled = engine.chat.completions.create({ ...body, stream: false }, { signal: controller.signal });
      setTimeout(() => controller.abort(), 20);
      await cancelled.catch((error: unknown) => expect(error).toMatchObject({ name: "AbortError" }));
    });
  });

  it("refuses a draft model that is missing, foreign, or has nothing to do", async () => {
    const load = (options: object) => loadNano({ contextSize: 512, ...options });
    await expect(load({ draftModel: nanoModel() })).rejects.toMatchObject({ status: 400, param: "draftTokens" });
    await expect(load({ draftModel: "/nowhere.gguf", draftTokens: 4 })).rejects.toMatchObject({
      param: "draftModel",
      code: "model_not_found",
    });
    const foreign = await ensureModel("tiny-qwen3");
    await expect(load({ draftModel: foreign, draftTokens: 4 })).rejects.toMatchObject({
      status: 400,
      code: "draft_model_mismatch",
      param: "draftModel",
    });
  });
});

describe("sampling threads", () => {
  it("change no text", async () => {
    // Eight at a time, and whatever the model thinks of it: letters, each chosen by mask, sampler and seed.
    const word = (seed: number) => "abcdefgh".repeat(10).slice(seed);
    await using({ samplingThreads: 3 }, async (engine) => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, seed) =>
          engine.chat.completions.create({
            ...ask("Sing.", { grammar: `root ::= "${word(seed)}"`, logprobs: true, temperature: 1, seed }),
            stream: false,
          }),
        ),
      );
      for (const [seed, { choices }] of answers.entries()) {
        expect(choices[0]?.message.content).toBe(word(seed));
        expect(choices[0]?.logprobs?.content.map(({ token }) => token).join("")).toBe(word(seed));
      }
      expect(engine.stats().sharedSteps).toBeGreaterThan(20);
    });
    const known = knownAnswers().slice(0, 8);
    const texts = (engine: Engine) =>
      Promise.all(
        known.map(async ({ messages }) => {
          const body = { messages: messages as never, temperature: 0, stream: false as const };
          return (await engine.chat.completions.create(body)).choices[0]?.message.content;
        }),
      );
    expect(await using({ samplingThreads: 3 }, texts)).toEqual(known.map(({ content }) => content));
  });
});
