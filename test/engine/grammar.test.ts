import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import type { ChatCompletionCreateParams } from "../../src/openai/params.js";
import { ensureModel } from "../models/qwen3.js";
import { answer, ask, idle, loadNano } from "../support/engine.js";

let nano: Engine;
let noise: Engine;
beforeAll(async () => {
  nano = await loadNano();
  noise = await Engine.load({ model: await ensureModel("tiny-qwen3"), contextSize: 2048, threads: 1 });
});
afterAll(() => Promise.all([nano.close(), noise.close()]));

const json = String.raw`
root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (string ":" value ("," string ":" value){0,4})? "}"
array ::= "[" (value ("," value){0,4})? "]"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})){0,12} "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,8})? ([eE] [-+]? [0-9]{1,2})?
`;
/** As random as sampling gets. */
const wild = { temperature: 2, top_k: 0, top_p: 1, min_p: 0 } as const;

describe("grammar", () => {
  it("is followed by a real model, which still chooses what to say", async () => {
    const sounds = 'root ::= "The sound is " ("woof" | "moo" | "meow") "!"';
    expect(await answer(nano, "What does a dog say?", { grammar: sounds })).toMatch(/^The sound is (woof|moo|meow)!$/);
    const capital = 'root ::= "The capital of " [A-Z] [a-z]+ " is " [A-Z] [a-z]+ "."';
    expect(await answer(nano, "What is the capital of France?", { grammar: capital })).toBe(
      "The capital of France is Paris.",
    );
  });

  it("ends the answer where nothing can follow, with stop, and without a token for the end", async () => {
    const completion = await nano.chat.completions.create({
      ...ask("Hello!", { grammar: 'root ::= "ab"' }),
      stream: false,
    });
    expect(completion.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "ab" } });
    expect(completion.usage?.completion_tokens).toBeLessThanOrEqual(2);
  });

  it("lets the model end where it may, and only there", async () => {
    const text = await answer(nano, "Count to 12.", { grammar: 'root ::= [0-9]+ (", " [0-9]+)* "."?' });
    expect(text).toMatch(/^\d+(, \d+)*\.?$/);
    // Banned or not, the end is not allowed before ten characters are out.
    for (const bias of [{}, { "1502": 100 }]) {
      const forced = await answer(nano, "Hello!", { grammar: "root ::= [a-z ]{10,20}", logit_bias: bias });
      expect(forced).toMatch(/^[a-z ]{10,20}$/);
    }
  });

  it("holds noise over the real vocabulary, whatever the sampler: 60 documents parse", async () => {
    const samplers: Partial<ChatCompletionCreateParams>[] = [
      wild,
      {},
      { temperature: 0 },
      { mirostat: 2, temperature: 2 },
      { ...wild, top_k: 5 },
      { ...wild, repeat_penalty: 2 },
    ];
    for (const sampler of samplers) {
      const completions = await Promise.all(
        Array.from({ length: 10 }, (_, seed) =>
          noise.chat.completions.create({
            ...ask("x", { ...sampler, seed, grammar: json, max_tokens: 400 }),
            stream: false,
          }),
        ),
      );
      for (const { choices } of completions) {
        const { message, finish_reason } = choices[0] ?? {};
        if (finish_reason === "stop") expect(JSON.parse(message?.content ?? "")).toBeTypeOf("object");
        else expect(message?.content).toMatch(/^\{/);
      }
    }
    await idle(noise);
  });

  it("multi-byte characters split over tokens", async () => {
    const text = await answer(noise, "x", { ...wild, seed: 4, grammar: 'root ::= ("歪" | "😀" | "é"){30}' });
    expect([...text].length).toBe(30);
    expect(text).toMatch(/^[歪😀é]{30}$/u);
  });

  it("does not disturb those beside it, nor they it", async () => {
    const [free, bound, other] = await Promise.all([
      answer(nano, "What does a cow say?"),
      answer(nano, "What does a cow say?", { grammar: 'root ::= "yes" | "no"' }),
      answer(nano, "Count to 40.", { grammar: "root ::= [a-z]{5}" }),
    ]);
    expect(free).toBe("A cow says moo.");
    expect(bound).toMatch(/^(yes|no)$/);
    expect(other).toMatch(/^[a-z]{5}$/);
  });

  it("is stopped by max_tokens and stop strings like any answer", async () => {
    const cut = await nano.chat.completions.create({
      ...ask("x", { grammar: "root ::= [a-z]{50}", max_tokens: 3 }),
      stream: false,
    });
    expect(cut.choices[0]?.finish_reason).toBe("length");
    expect(await answer(nano, "x", { grammar: 'root ::= "abc" "def"', stop: "cd" })).toBe("ab");
  });

  it("logprobs stay the model's own, n answers each follow it", async () => {
    const completion = await nano.chat.completions.create({
      ...ask("What does a dog say?", {
        ...wild,
        seed: 1,
        grammar: "root ::= [a-d]{6}",
        logprobs: true,
        top_logprobs: 1,
      }),
      n: 4,
      stream: false,
    });
    for (const { message, logprobs } of completion.choices) {
      expect(message.content).toMatch(/^[a-d]{6}$/);
      // What it would have said is not what it had to say.
      expect(logprobs?.content[0]?.top_logprobs[0]?.token).toBe("A");
    }
  });

  const refused: [what: string, grammar: string, message: RegExp][] = [
    ["no grammar at all", "hello", /line 1, column/],
    ["an unknown rule", 'root ::= "a"\n  foo', /line 2, column/],
    ["no root", 'start ::= "a"', /\broot\b/],
    ["left recursion", 'root ::= root "a" | "b"', /recurs/],
    ["a repetition the wrong way round", 'root ::= "a"{5,3}', /line 1/],
    ["a repetition beyond reason", 'root ::= "a"{2000000000,2147483647}', /line 1/],
    ["60,000 parentheses", `root ::= ${"(".repeat(60_000)}"a"${")".repeat(60_000)}`, /line 1/],
  ];
  for (const [what, grammar, message] of refused) {
    it(`refuses ${what} with a 400 that names the place`, async () => {
      const request = nano.chat.completions.create({ ...ask("Hello!", { grammar }), stream: false });
      await expect(request).rejects.toMatchObject({
        status: 400,
        code: "invalid_grammar",
        param: "grammar",
        message: expect.stringMatching(message),
      });
    });
  }
});
