import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import type { ChatCompletionCreateParams } from "../../src/openai/params.js";
import type { TokenLogprob } from "../../src/openai/types.js";
import { ask, loadNano } from "../support/engine.js";

let engine: Engine;
beforeAll(async () => {
  engine = await loadNano({ flashAttention: "off", prefixCache: false });
});
afterAll(() => engine.close());

const text = (entries: readonly TokenLogprob[]) =>
  Buffer.concat(entries.map(({ bytes }) => Buffer.from(bytes))).toString();

async function whole(content: string, more: Partial<ChatCompletionCreateParams> = {}) {
  const completion = await engine.chat.completions.create({
    ...ask(content, { logprobs: true, ...more }),
    stream: false,
  });
  const [choice] = completion.choices;
  if (choice === undefined) throw new Error("no choice");
  return { content: choice.message.content ?? "", entries: choice.logprobs?.content ?? [], choice };
}

describe("logprobs", () => {
  it("are there for every token of the text, and only when asked for", async () => {
    const { content, entries } = await whole("What is the capital of France?");
    expect(text(entries)).toBe(content);
    for (const { logprob, top_logprobs, token, bytes } of entries) {
      expect(logprob).toBeLessThanOrEqual(0);
      expect(top_logprobs).toEqual([]);
      expect(Buffer.from(bytes).toString()).toBe(token);
    }
    const without = await engine.chat.completions.create({ ...ask("Hello!"), stream: false });
    expect(without.choices[0]?.logprobs).toBe(null);
  });

  it("list the most likely tokens, which at temperature 0 begin with the chosen one", async () => {
    const { entries } = await whole("Tell me a story about a fox.", { top_logprobs: 20, max_tokens: 30 });
    expect(entries.length).toBe(30);
    for (const { token, logprob, top_logprobs } of entries) {
      expect(top_logprobs.length).toBe(20);
      expect(top_logprobs[0]).toMatchObject({ token, logprob });
      const logprobs = top_logprobs.map((top) => top.logprob);
      expect(logprobs).toEqual([...logprobs].sort((a, b) => b - a));
      expect(logprobs.reduce((sum, each) => sum + Math.exp(each), 0)).toBeLessThan(1.00001);
    }
  });

  it("are the model's own: samplers, biases and penalties do not change them", async () => {
    const [token] = await engine.tokenize("Once");
    const plain = await whole("Tell me a story about a fox.", { top_logprobs: 3, max_tokens: 1 });
    const bent = await whole("Tell me a story about a fox.", {
      top_logprobs: 3,
      max_tokens: 1,
      temperature: 1.7,
      top_k: 1,
      repeat_penalty: 3,
      logit_bias: { [String(token)]: 5 },
    });
    expect(bent.entries).toEqual(plain.entries);
    const banned = await whole("Tell me a story about a fox.", {
      max_tokens: 1,
      logit_bias: { [String(token)]: -100 },
    });
    expect(banned.entries[0]?.logprob).toBeLessThan(-1);
  });

  it("are the same streamed, each with or before the text of its token", async () => {
    const { entries } = await whole("Count to 12.", { top_logprobs: 2 });
    const streamed: TokenLogprob[] = [];
    let content = "";
    const stream = await engine.chat.completions.create({
      ...ask("Count to 12.", { logprobs: true, top_logprobs: 2 }),
      stream: true,
    });
    for await (const { choices } of stream) {
      content += choices[0]?.delta.content ?? "";
      streamed.push(...(choices[0]?.logprobs?.content ?? []));
      expect(text(streamed)).toBe(content);
    }
    expect(streamed).toEqual(entries);
  });

  it("end where a stop string ends the text", async () => {
    for (const stop of [", 10", "0, 11", "7, 8", "2"]) {
      const { content, entries, choice } = await whole("Count to 40.", { stop });
      expect(choice.finish_reason).toBe("stop");
      // A token that the stop string cuts has no entry.
      expect(content.startsWith(text(entries))).toBe(true);
      expect(content.length - text(entries).length).toBeLessThan(4);
    }
  });

  it("come with n answers, each its own", async () => {
    const completion = await engine.chat.completions.create({
      ...ask("Tell me a story about a fox.", { logprobs: true, temperature: 1.5, top_k: 3, seed: 3, max_tokens: 10 }),
      n: 3,
      stream: false,
    });
    for (const { message, logprobs } of completion.choices) expect(text(logprobs?.content ?? [])).toBe(message.content);
  });
});
