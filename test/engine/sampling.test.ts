import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import type { ChatCompletionCreateParams } from "../../src/openai/params.js";
import { samplingOptions } from "../../src/options.js";
import { answer, loadNano } from "../support/engine.js";

let engine: Engine;
beforeAll(async () => {
  engine = await loadNano();
});
afterAll(() => engine.close());

const story = "Tell me a story about a fox.";
/** Sampling from the whole distribution, flattened: as random as it gets. */
const wild = { temperature: 2, top_k: 0, top_p: 1, min_p: 0, max_tokens: 24 } as const;
const tell = (more: Partial<ChatCompletionCreateParams>) => answer(engine, story, { max_tokens: 24, ...more });
const greedy = () => tell({ temperature: 0 });

/** The texts that four seeds give. */
async function texts(more: Partial<ChatCompletionCreateParams>): Promise<Set<string>> {
  return new Set(await Promise.all([1, 2, 3, 4].map((seed) => tell({ ...more, seed }))));
}

describe("each sampling option has its effect", () => {
  // A row of the option table without a test here fails the last test.
  const tested = new Set<string>();
  const option = (name: string, body: () => Promise<void>) => {
    tested.add(name);
    it(name, body);
  };

  option("temperature", async () => {
    expect(await texts({ temperature: 0 })).toEqual(new Set([await greedy()]));
    expect((await texts(wild)).size).toBe(4);
  });

  option("top_k", async () => {
    expect(await texts({ ...wild, top_k: 1 })).toEqual(new Set([await greedy()]));
    expect((await texts({ ...wild, top_k: 50 })).size).toBeGreaterThan(1);
  });

  option("top_p", async () => {
    expect(await texts({ ...wild, top_p: 1e-6 })).toEqual(new Set([await greedy()]));
  });

  option("min_p", async () => {
    expect(await texts({ ...wild, min_p: 1 })).toEqual(new Set([await greedy()]));
  });

  option("typical_p", async () => {
    const plain = await texts(wild);
    const typical = await texts({ ...wild, typical_p: 0.2 });
    for (const text of typical) expect(plain.has(text)).toBe(false);
  });

  option("repeat_penalty", async () => {
    const plain = await answer(engine, "Count to 40.", { temperature: 0 });
    const penalised = await answer(engine, "Count to 40.", { temperature: 0, repeat_penalty: 5 });
    expect(penalised).not.toBe(plain);
  });

  option("frequency_penalty", async () => {
    // The comma comes 39 times: its penalty grows until something else wins.
    const commas = (text: string) => text.split(",").length - 1;
    const plain = await answer(engine, "Count to 40.", { temperature: 0, max_tokens: 60 });
    const penalised = await answer(engine, "Count to 40.", { temperature: 0, max_tokens: 60, frequency_penalty: 2 });
    expect(commas(penalised)).toBeLessThan(commas(plain));
    const rewarded = await answer(engine, "Count to 40.", { temperature: 0, max_tokens: 60, frequency_penalty: -2 });
    expect(rewarded).not.toBe(plain);
  });

  option("presence_penalty", async () => {
    const plain = await texts(wild);
    const penalised = await texts({ ...wild, presence_penalty: 2 });
    for (const text of penalised) expect(plain.has(text)).toBe(false);
  });

  option("repeat_last_n", async () => {
    const ask = (repeat_last_n: number) =>
      answer(engine, "Count to 40.", { temperature: 0, repeat_penalty: 5, repeat_last_n });
    const plain = await answer(engine, "Count to 40.", { temperature: 0 });
    expect(await ask(0)).toBe(plain);
    expect(await ask(64)).not.toBe(plain);
    expect(await ask(-1)).not.toBe(plain);
    expect(await ask(2)).not.toBe(await ask(64));
  });

  option("mirostat", async () => {
    const base = { ...wild, temperature: 1 };
    const plain = await texts(base);
    const one = await texts({ ...base, mirostat: 1 });
    const two = await texts({ ...base, mirostat: 2 });
    expect(one).not.toEqual(plain);
    expect(two).not.toEqual(plain);
    expect(one).not.toEqual(two);
  });

  option("mirostat_tau", async () => {
    // A target entropy near 0 leaves the most likely token; a high one leaves chance.
    expect((await texts({ temperature: 2, mirostat: 2, mirostat_tau: 0.001, mirostat_eta: 0.001 })).size).toBe(1);
    expect((await texts({ temperature: 2, mirostat: 2, mirostat_tau: 20 })).size).toBe(4);
  });

  option("mirostat_eta", async () => {
    const base = { temperature: 2, mirostat: 2, mirostat_tau: 2, max_tokens: 60 } as const;
    expect(await texts({ ...base, mirostat_eta: 0 })).not.toEqual(await texts({ ...base, mirostat_eta: 1 }));
  });

  option("seed", async () => {
    expect(await tell({ ...wild, seed: 42 })).toBe(await tell({ ...wild, seed: 42 }));
    expect(await tell({ ...wild, seed: 42 })).not.toBe(await tell({ ...wild, seed: 43 }));
    const drawn = new Set(await Promise.all([0, 1, 2, 3].map(() => tell(wild))));
    expect(drawn.size).toBe(4);
    // The largest seed is one like any other, not llama.cpp's "draw one".
    expect(await tell({ ...wild, seed: 4294967295 })).toBe(await tell({ ...wild, seed: 4294967295 }));
  });

  it("logit_bias", async () => {
    const [token] = await engine.tokenize("Once");
    expect(token).toBeDefined();
    const plain = await greedy();
    expect(plain.startsWith("Once")).toBe(true);
    const banned = await tell({ temperature: 0, logit_bias: { [String(token)]: -100 } });
    expect(banned.startsWith("Once")).toBe(false);
    const forced = await tell({ temperature: 0, max_tokens: 3, logit_bias: { [String(token)]: 100 } });
    expect(forced).toBe("OnceOnceOnce");
  });

  it("has a test for every row of the option table", () => {
    expect([...tested].sort()).toEqual(samplingOptions.map(({ name }) => name).sort());
  });
});

describe("a request's random numbers are its own", () => {
  it("the same seed gives the same text beside others", async () => {
    // With exact attention: what differs then differs by the random numbers, not by rounding.
    const exact = await loadNano({ flashAttention: "off" });
    const tell = (more: Partial<ChatCompletionCreateParams>) => answer(exact, story, { max_tokens: 24, ...more });
    const warm = { temperature: 1.5, top_k: 3, top_p: 1, min_p: 0 };
    const alone = await tell({ ...warm, seed: 9 });
    const crowd = await Promise.all([9, 10, 9, 11].map((seed) => tell({ ...warm, seed })));
    expect(crowd[0]).toBe(alone);
    expect(crowd[2]).toBe(alone);
    expect(new Set(crowd).size).toBeGreaterThan(1);
    await exact.close();
  });
});
