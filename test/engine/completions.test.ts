import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import { loadNano } from "../support/engine.js";
import { rejection } from "../support/scripted-engine.js";

let engine: Engine;
beforeAll(async () => {
  engine = await loadNano();
});
afterAll(() => engine.close());

const messages = [{ role: "user" as const, content: "What is the capital of France?" }];

async function complete(prompt: string | number[], more: object = {}) {
  const { choices, usage } = await engine.completions.create({ prompt, temperature: 0, max_tokens: 12, ...more });
  return { text: choices[0]?.text ?? "", logprobs: choices[0]?.logprobs, usage };
}

describe("text completions on a model", () => {
  it("of a rendered prompt say what the chat completion says", async () => {
    const chat = await engine.chat.completions.create({ messages, temperature: 0, max_tokens: 12 });
    const prompt = await engine.applyTemplate(messages);
    const { text, usage } = await complete(prompt);
    expect(text).toBe(chat.choices[0]?.message.content);
    expect(usage.prompt_tokens).toBe(chat.usage.prompt_tokens);
  });

  it("of token ids are those of their text", async () => {
    const text = "Once upon a time there was a fox";
    const tokens = [...(await engine.tokenize(text))];
    const byIds = await complete(tokens, { logprobs: 2 });
    expect(byIds.usage.prompt_tokens).toBe(tokens.length);
    expect(byIds.logprobs?.tokens.join("")).toBe(byIds.text);
    const echoed = await complete(tokens, { echo: true });
    expect(echoed.text).toBe(text + byIds.text);
  });

  it("refuse ids that the vocabulary does not have, and go on", async () => {
    for (const prompt of [[engine.info.vocabSize], [1, 2 ** 31 - 1]]) {
      expect(await rejection(complete(prompt))).toMatchObject({ status: 400, param: "prompt" });
    }
    expect(await rejection(engine.detokenize([engine.info.vocabSize]))).toMatchObject({ status: 400, param: "tokens" });
    expect((await complete("Once")).text).not.toBe("");
  });
});

describe("tokens and texts", () => {
  it.each(["Once upon a time, 歪 🦊", "a\u0000b", "", "  two  spaces\n"])("%j comes back", async (text) => {
    expect(await engine.detokenize(await engine.tokenize(text))).toBe(text);
  });

  it("give each piece its bytes over HTTP", async () => {
    const response = await engine.fetch("http://local/tokenize", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ content: "fox 🦊", with_pieces: true }),
    });
    const { tokens } = (await response.json()) as { tokens: { id: number; piece: string | number[] }[] };
    const bytes = tokens.map(({ piece }) => Buffer.from(typeof piece === "string" ? piece : Uint8Array.from(piece)));
    expect(Buffer.concat(bytes).toString()).toBe("fox 🦊");
  });
});
