import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import { answer, ask, idle, knownAnswers, loadNano } from "../support/engine.js";

let engine: Engine;
beforeAll(async () => {
  engine = await loadNano({ parallel: 8 });
});
afterAll(() => engine.close());

// Long answers, so that all eight are under way together.
const questions = [33, 34, 35, 36, 37, 38, 39, 40].map((n) => `Count to ${n}.`);

describe("continuous batching", () => {
  it("8 requests at once give byte for byte what each gives alone, from shared batches", async () => {
    const alone: string[] = [];
    for (const question of questions) alone.push(await answer(engine, question));
    await idle(engine);
    const before = engine.stats();

    const together = await Promise.all(questions.map((question) => answer(engine, question)));
    expect(together).toEqual(alone);

    await idle(engine);
    const after = engine.stats();
    const tokens = after.generatedTokens - before.generatedTokens;
    const steps = after.steps - before.steps;
    expect(after.peakSequences).toBe(8);
    expect(after.sharedSteps).toBeGreaterThan(before.sharedSteps);
    // Alone, every token costs a step. Together the longest answer sets the number of steps.
    expect(steps).toBeLessThan(tokens);
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
