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
const tell = (more: Partial<ChatCompletionCreateParams>) =>
  answer(engine, story, { max_tokens: 24, cache_prompt: false, ...more });
const greedy = () => tell({ temperature: 0 });

/** The texts that four seeds give: one after the other, for a batch of several rounds differently than one alone. */
async function texts(more: Partial<ChatCompletionCreateParams>): Promise<Set<string>> {
  const told = new Set<string>();
  for (const seed of [1, 2, 3, 4]) told.add(await tell({ ...more, seed }));
  return told;
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

  option("top_n_sigma", async () => {
    expect(await texts({ ...wild, top_n_sigma: 0.001 })).toEqual(new Set([await greedy()]));
    expect((await texts({ ...wild, top_n_sigma: 0 })).size).toBe(4);
  });

  /** At each place the second most likely token of two is left, and so is drawn. */
  const second = { ...wild, samplers: ["top_k", "xtc", "temperature"], top_k: 2, xtc_probability: 1, xtc_threshold: 0 };

  option("xtc_probability", async () => {
    const tokens = async (xtc_probability: number) => {
      const { choices } = await engine.chat.completions.create({
        ...{ ...second, xtc_probability, seed: 1, logprobs: true, top_logprobs: 2 },
        messages: [{ role: "user", content: story }],
        stream: false,
      });
      return (choices[0]?.logprobs?.content ?? []).map(({ token, top_logprobs }) =>
        top_logprobs.findIndex((each) => each.token === token),
      );
    };
    expect(new Set(await tokens(1))).toEqual(new Set([1]));
    expect(new Set(await tokens(0.5))).toEqual(new Set([0, 1]));
    // Half of the time by numbers of its own: the same seed drops at the same places.
    expect(await tokens(0.5)).toEqual(await tokens(0.5));
  });

  option("xtc_threshold", async () => {
    const off = await tell({ ...second, seed: 1, xtc_probability: 0 });
    expect(await tell({ ...second, seed: 1, xtc_threshold: 0.51 })).toBe(off);
    expect(await tell({ ...second, seed: 1 })).not.toBe(off);
  });

  const moving = { ...wild, temperature: 2, dynatemp_range: 2 };

  option("dynatemp_range", async () => {
    // The entropy is below its largest value everywhere: to a high power, that leaves the lower end, which is 0.
    const cold = await texts({ ...moving, dynatemp_exponent: 10 });
    const hot = await texts({ ...moving, dynatemp_exponent: 10, dynatemp_range: 0 });
    expect(cold.size).toBeLessThan(hot.size);
  });

  option("dynatemp_exponent", async () => {
    expect(await texts({ ...moving, dynatemp_exponent: 10 })).not.toEqual(
      await texts({ ...moving, dynatemp_exponent: 0 }),
    );
    expect((await texts({ ...moving, dynatemp_exponent: 0 })).size).toBe(4);
  });

  /** Says "Once" for ever, unless DRY lowers it by more than the bias. */
  const repeat = async (more: Partial<ChatCompletionCreateParams>) => {
    const [token] = await engine.tokenize("Once");
    return tell({ temperature: 0, max_tokens: 12, logit_bias: { [String(token)]: 60 }, dry_multiplier: 1, ...more });
  };
  const forever = "Once".repeat(12);

  option("dry_multiplier", async () => {
    expect(await repeat({ dry_multiplier: 0 })).toBe(forever);
    expect(await repeat({ dry_multiplier: 100 })).not.toBe(forever);
  });

  option("dry_base", async () => {
    expect(await repeat({ dry_base: 1 })).toBe(forever);
    expect(await repeat({ dry_base: 10 })).not.toBe(forever);
  });

  option("dry_allowed_length", async () => {
    const lengths = [1, 3, 5].map(async (dry_allowed_length) => {
      const text = await repeat({ dry_base: 10, dry_allowed_length });
      return /^(?:Once)*/.exec(text)?.[0].length;
    });
    const [one = 0, three = 0, five = 0] = await Promise.all(lengths);
    expect([one < three, three < five]).toEqual([true, true]);
    expect(await repeat({ dry_base: 10, dry_allowed_length: 20 })).toBe(forever);
  });

  option("dry_penalty_last_n", async () => {
    expect(await repeat({ dry_base: 10, dry_penalty_last_n: 0 })).toBe(forever);
    expect(await repeat({ dry_base: 10, dry_penalty_last_n: 3 })).toBe(forever);
    expect(await repeat({ dry_base: 10, dry_penalty_last_n: -1 })).not.toBe(forever);
  });

  it("dry_sequence_breakers", async () => {
    expect(await repeat({ dry_base: 10, dry_sequence_breakers: ["Once"] })).toBe(forever);
    expect(await repeat({ dry_base: 10, dry_sequence_breakers: [] })).not.toBe(forever);
  });

  option("min_keep", async () => {
    expect(await texts({ ...wild, top_p: 1e-6, min_keep: 1 })).toEqual(new Set([await greedy()]));
    expect((await texts({ ...wild, top_p: 1e-6, min_keep: 50 })).size).toBe(4);
    expect((await texts({ ...wild, min_p: 1, min_keep: 50 })).size).toBe(4);
  });

  it("samplers", async () => {
    // What is not named does not run.
    expect((await texts({ ...wild, top_k: 1, samplers: ["temperature"] })).size).toBe(4);
    expect(await texts({ ...wild, top_k: 1, samplers: ["top_k"] })).toEqual(new Set([await greedy()]));
    // Without temperature not even 0 does; and penalties are left out like any other.
    expect((await texts({ ...wild, temperature: 0, samplers: ["top_k"] })).size).toBeGreaterThan(1);
    const count = (more: Partial<ChatCompletionCreateParams>) =>
      answer(engine, "Count to 40.", { temperature: 0, ...more });
    expect(await count({ repeat_penalty: 5, samplers: ["temperature"] })).toBe(await count({}));
    // The order matters: a flat distribution has more above min_p than a steep one.
    const ordered = (samplers: string | string[]) => texts({ ...wild, min_p: 0.3, samplers });
    expect(await ordered(["temperature", "min_p"])).not.toEqual(await ordered(["min_p", "temperature"]));
  });

  it("samplers by any of their names", async () => {
    // One after the other, with exact attention: what differs then differs by the samplers, not by rounding.
    const exact = await loadNano({ flashAttention: "off" });
    const tell = (samplers?: string | string[]) =>
      answer(exact, story, { ...wild, ...{ max_tokens: 24, seed: 3, top_k: 5, typical_p: 0.5, samplers } });
    const short = await tell("kyt");
    expect(await tell(["top_k", "typical_p", "temperature"])).toBe(short);
    expect(await tell(["top_k", "typ_p", "temperature"])).toBe(short);
    expect(await tell(["temperature", "typ_p", "top_k"])).not.toBe(short);
    // The default, spelt out, is the default.
    expect(await tell("edskypmxt")).toBe(await tell());
    await exact.close();
  });

  it("ignore_eos and min_tokens", async () => {
    const ask = async (more: Partial<ChatCompletionCreateParams>) => {
      const { choices, usage } = await engine.chat.completions.create({
        ...{ messages: [{ role: "user" as const, content: "What does a dog say?" }], max_tokens: 40, seed: 1, ...more },
        stream: false,
      });
      return { finish: choices[0]?.finish_reason, tokens: usage.completion_tokens, text: choices[0]?.message.content };
    };
    // Greedy, from preselected candidates, from all of them, after penalties.
    for (const base of [
      { temperature: 0 },
      { temperature: 1 },
      { temperature: 1, top_k: 0 },
      { repeat_penalty: 1.1 },
    ]) {
      const plain = await ask(base);
      expect(plain.finish).toBe("stop");
      expect(await ask({ ...base, ignore_eos: true })).toMatchObject({ finish: "length", tokens: 40 });
      const late = await ask({ ...base, min_tokens: plain.tokens + 5 });
      expect(late.tokens).toBeGreaterThanOrEqual(plain.tokens + 5);
      expect(late.text?.startsWith(plain.text ?? "-")).toBe(true);
      // What does not forbid anything changes nothing.
      expect(await ask({ ...base, min_tokens: 1 })).toEqual(plain);
    }
    // A grammar's end is the end.
    for (const temperature of [0, 1]) {
      expect(await ask({ temperature, grammar: 'root ::= "Wau"', ignore_eos: true })).toMatchObject({
        finish: "stop",
        text: "Wau",
      });
      const open = 'root ::= "Wau" | "Wau, wau"';
      expect(await ask({ temperature, grammar: open, ignore_eos: true })).toMatchObject({ text: "Wau, wau" });
    }
  });

  it("n_predict and n_probs", async () => {
    const { choices, usage } = await engine.chat.completions.create({
      messages: [{ role: "user", content: story }],
      n_predict: 3,
      n_probs: 2,
    });
    expect(usage.completion_tokens).toBe(3);
    expect(choices[0]?.logprobs?.content.map(({ top_logprobs }) => top_logprobs.length)).toEqual([2, 2, 2]);
    const whole = await answer(engine, "What does a dog say?", { n_predict: -1, n_probs: 0 });
    expect(whole).toBe(await answer(engine, "What does a dog say?"));
  });

  it("logit_bias in llama-server's forms", async () => {
    const [token = 0] = await engine.tokenize("Once");
    for (const logit_bias of [{ [token]: false as const }, [[token, false]], [["Once", -100]], [["Once", false]]]) {
      const text = await tell({ temperature: 0, logit_bias: logit_bias as ChatCompletionCreateParams["logit_bias"] });
      expect(text.startsWith("Once")).toBe(false);
    }
    expect(await tell({ temperature: 0, max_tokens: 3, logit_bias: [["Once", 100]] })).toBe("OnceOnceOnce");
    expect(await tell({ temperature: 0, max_tokens: 3, logit_bias: [[token, 100]] })).toBe("OnceOnceOnce");
    expect(await tell({ temperature: 0, logit_bias: [] })).toBe(await greedy());
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
