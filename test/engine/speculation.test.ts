import { describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
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

// Drafts make batches of another size, so kernels that round by batch size are left out.
const exact = { flashAttention: "off", prefixCache: false } as const;
const repeating = `root ::= "${"the dog and the cat and the cow, ".repeat(24)}"`;

describe("speculative decoding with n-grams", () => {
  it("gives the same text, at temperature 0 and above it, alone and beside others", async () => {
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

describe("sampling threads", () => {
  it("change no text", async () => {
    const texts = (engine: Engine) =>
      Promise.all(
        Array.from({ length: 8 }, (_, seed) =>
          answer(engine, "Tell me a story about a dog.", {
            temperature: 1,
            seed,
            max_tokens: 60,
            ...(seed % 2 === 0 ? { grammar: "root ::= [A-Za-z ,.]+", logprobs: true } : {}),
          }),
        ),
      );
    const serial = await using({ ...exact, samplingThreads: 0 }, texts);
    const parallel = await using({ ...exact, samplingThreads: 3 }, texts);
    expect(parallel).toEqual(serial);
  });
});
