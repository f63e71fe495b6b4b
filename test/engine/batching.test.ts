import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import { answer, ask, idle, knownAnswers, loadNano } from "../support/engine.js";

let engine: Engine;
let exact: Engine;
beforeAll(async () => {
  engine = await loadNano({ parallel: 8 });
  exact = await loadNano({ parallel: 8, flashAttention: "off", prefixCache: false });
});
afterAll(() => Promise.all([engine.close(), exact.close()]));

const stories = ["fox", "bear", "owl", "dog", "cat", "horse", "mouse", "crow"].map(
  (animal) => `Tell me a story about a ${animal}.`,
);

describe("continuous batching", () => {
  it("8 requests at once give byte for byte what each gives alone", async () => {
    const questions = knownAnswers()
      .filter(({ messages, content }) => messages.length === 1 && !content.startsWith("Once upon a time"))
      .map(({ messages }) => messages[0]?.content ?? "");
    expect(questions.length).toBeGreaterThan(16);
    const alone: string[] = [];
    for (const question of questions) alone.push(await answer(engine, question));
    for (let first = 0; first < questions.length; first++) {
      const eight = Array.from({ length: 8 }, (_, i) => (first + i) % questions.length);
      const together = await Promise.all(eight.map((i) => answer(engine, questions[i] ?? "")));
      expect(together).toEqual(eight.map((i) => alone[i]));
    }
    await idle(engine);
    expect(engine.stats().sharedSteps).toBeGreaterThan(50);
  });

  it("so do 8 stories, whose every second word is a close call, with exact attention", async () => {
    const alone: string[] = [];
    for (const story of stories) alone.push(await answer(exact, story));
    expect(new Set(alone).size).toBe(8);
    await idle(exact);
    const before = exact.stats();

    for (let round = 0; round < 5; round++) {
      expect(await Promise.all(stories.map((story) => answer(exact, story)))).toEqual(alone);
    }

    // From shared batches: alone, every token costs a step; together the longest answer sets the number of steps.
    await idle(exact);
    const after = exact.stats();
    const tokens = after.generatedTokens - before.generatedTokens;
    const steps = after.steps - before.steps;
    expect(after.peakSequences).toBeGreaterThanOrEqual(2);
    expect(after.sharedSteps - before.sharedSteps).toBeGreaterThan(steps / 2);
    expect(tokens / steps).toBeGreaterThan(1.2);
  });

  it("takes more requests than sequences, in order, and finishes all", async () => {
    const rows = knownAnswers().filter(({ content }) => !content.startsWith("Once upon a time"));
    const requests = [...rows, ...rows, ...rows];
    const answers = await Promise.all(
      requests.map(({ messages }) =>
        engine.chat.completions.create({ messages: messages as never, temperature: 0, stream: false }),
      ),
    );
    expect(answers.map((completion) => completion.choices[0]?.message.content)).toEqual(
      requests.map(({ content }) => content),
    );
    await idle(engine);
  });

  it("a request joins while others run, and leaves without disturbing them", async () => {
    const long = await engine.chat.completions.create({ ...ask("Count to 40."), stream: true });
    let text = "";
    let joined: Promise<string> | undefined;
    for await (const chunk of long) {
      text += chunk.choices[0]?.delta.content ?? "";
      if (text.length > 10) joined ??= answer(engine, "What does a cow say?");
    }
    expect(text).toBe(`${Array.from({ length: 40 }, (_, i) => i + 1).join(", ")}.`);
    expect(await joined).toBe("A cow says moo.");
  });
});
