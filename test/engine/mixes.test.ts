import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine.js";
import type { LoadOptions } from "../../src/load-options.js";
import { idle, knownAnswers, loadNano } from "../support/engine.js";
import { randomSource } from "../support/test-addon.js";

/**
 * Random mixes of requests on nano: each must give the text that it gives alone, at temperature 0. Rounding depends on
 * the size of a batch, so a word that was nearly another one may become it; such places are found by the model's own
 * logprobs, counted and printed. What is exact is tested on a scripted model (test/native/loop.test.ts).
 */
const seeds = Number(process.env.TOKENLOOP_MIX_SEEDS ?? 500);

const system = `You are a helpful assistant. ${"The dog likes the cat, and the cat likes the cow. ".repeat(6)}`;
const story = (word: string) => [{ role: "user", content: `Tell me a story about a ${word}.` }];
const prompts = [
  ...knownAnswers().map(({ messages }) => messages),
  ...["dog", "cat", "boat", "cow", "bird"].map(story),
  ...["dog", "fish"].map((word) => [{ role: "system", content: system }, ...story(word)]),
  ...["France", "Peru"].map((land) => [
    { role: "system", content: system },
    { role: "user", content: `What is the capital of ${land}?` },
  ]),
];

const engines: Partial<LoadOptions>[] = [
  // Everything is on, and far too small.
  { contextSize: 256, parallel: 4, streamBufferBytes: 4096 },
  // Kernels that round less by batch size.
  { contextSize: 256, parallel: 4, streamBufferBytes: 4096, flashAttention: "off", prefixCache: false },
  { contextSize: 1024, parallel: 8, draftTokens: 6, samplingThreads: 1, streamBufferBytes: 8192, stepTargetMs: 5 },
];

interface Token {
  text: string;
  logprob: number;
  /** How far the second most likely token is behind. */
  margin: number;
}
interface Answer {
  text: string;
  finish: string | null;
  tokens: Token[];
}

let alone: Engine;
let mixed: Engine[];
beforeAll(async () => {
  alone = await loadNano({ contextSize: 512, parallel: 1, prefixCache: false });
  mixed = await Promise.all(engines.map((options) => loadNano(options)));
});
afterAll(() => Promise.all([alone, ...mixed].map((engine) => engine.close())));

const memo = new Map<string, Promise<Answer>>();

/** What a request gives alone, with the logprobs that tell how sure each word was. */
function expected(messages: (typeof prompts)[number], stop: string | undefined, max_tokens: number): Promise<Answer> {
  const key = JSON.stringify([messages, stop, max_tokens]);
  const found = memo.get(key);
  if (found !== undefined) return found;
  const body = { messages: messages as never, stop, max_tokens, temperature: 0, logprobs: true, top_logprobs: 2 };
  const answer = alone.chat.completions.create({ ...body, stream: false }).then(({ choices: [choice] }) => ({
    text: choice?.message.content ?? "",
    finish: choice?.finish_reason ?? null,
    tokens: (choice?.logprobs?.content ?? []).map(({ token, logprob, top_logprobs }) => ({
      text: token,
      logprob,
      margin: (top_logprobs[0]?.logprob ?? 0) - (top_logprobs[1]?.logprob ?? Number.NEGATIVE_INFINITY),
    })),
  }));
  memo.set(key, answer);
  return answer;
}

/** The least margin of the words around the first character that differs. */
function marginAt({ text, tokens }: Answer, other: string): number {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at++;
  let end = 0;
  for (const [i, token] of tokens.entries()) {
    end += token.text.length;
    if (end > at || i === tokens.length - 1) {
      return Math.min(...tokens.slice(Math.max(0, i - 2), i + 2).map(({ margin }) => margin));
    }
  }
  return Number.POSITIVE_INFINITY;
}

const differences: { seed: number; margin: number; mixed: string; alone: string }[] = [];
let noise = 0;
let answers = 0;
let cancelled = 0;

async function run(seed: number, engine: Engine): Promise<void> {
  const random = randomSource(seed + 1);
  const upTo = (n: number) => Math.floor(random() * n);
  const chance = (p: number) => random() < p;
  await Promise.all(
    Array.from({ length: 3 + upTo(5) }, async () => {
      const messages = prompts[upTo(prompts.length)] ?? [];
      const stop = chance(0.2) ? "the" : undefined;
      const max_tokens = 20 + 50 * upTo(3);
      const n = chance(0.15) ? 2 : 1;
      const logprobs = chance(0.5);
      const patience = chance(0.25) ? 1 + upTo(4) : 0;
      const leaveAfter = chance(0.12) ? upTo(15) : Number.POSITIVE_INFINITY;
      const abortAfter = chance(0.08) ? upTo(20) : undefined;
      const body = {
        messages: messages as never,
        stop,
        max_tokens,
        n,
        temperature: 0,
        logprobs,
        priority: chance(0.2) ? upTo(3) - 1 : 0,
        cache_prompt: !chance(0.15),
        ...(chance(0.3) ? { prompt_cache_key: "other" } : {}),
      };
      if (chance(0.5)) await sleep(upTo(12));
      const whole = await expected(messages, stop, max_tokens);
      const texts = Array(n).fill("") as string[];
      const finishes = Array(n).fill(null) as (string | null)[];
      const heard: number[][] = Array.from({ length: n }, () => []);
      const controller = new AbortController();
      if (abortAfter !== undefined) setTimeout(() => controller.abort(), abortAfter);
      let over = true;
      try {
        const stream = await engine.chat.completions.create({ ...body, stream: true }, { signal: controller.signal });
        let chunks = 0;
        for await (const { choices } of stream) {
          for (const { index, delta, finish_reason, logprobs } of choices) {
            texts[index] += delta.content ?? "";
            finishes[index] = finish_reason ?? finishes[index] ?? null;
            for (const { logprob } of logprobs?.content ?? []) heard[index]?.push(logprob);
          }
          if (patience > 0) await sleep(patience);
          if (++chunks > leaveAfter) {
            over = false;
            break;
          }
        }
      } catch (error) {
        if (!controller.signal.aborted) throw error;
        over = false;
      }
      if (!over) cancelled++;
      for (const [index, text] of texts.entries()) {
        answers++;
        const same = over ? text === whole.text && finishes[index] === whole.finish : whole.text.startsWith(text);
        if (!same) differences.push({ seed, margin: marginAt(whole, text), mixed: text, alone: whole.text });
        else
          heard[index]?.forEach((logprob, i) => {
            noise = Math.max(noise, Math.abs(logprob - (whole.tokens[i]?.logprob ?? Number.NaN)));
          });
      }
    }),
  );
  await idle(engine);
  const { cellsCached, cells } = engine.stats();
  if (cellsCached > cells) throw new Error(`${cellsCached} cells are kept of ${cells}`);
}

describe("random mixes of requests", () => {
  it("give each request the text that it gives alone", { timeout: 900_000 }, async () => {
    await Promise.all(
      mixed.map(async (engine, i) => {
        for (let seed = i; seed < seeds; seed += mixed.length) await run(seed, engine);
      }),
    );
    const stats = mixed.map((engine) => engine.stats());
    const sum = (name: "preemptions" | "parkings" | "pauses" | "cachedTokens" | "acceptedTokens" | "sharedSteps") =>
      stats.reduce((total, each) => total + each[name], 0);
    const margins = differences.map(({ margin }) => margin);
    console.log(
      `mixes: ${seeds} seeds, ${answers} answers, ${cancelled} cancelled; ${differences.length} differ where the two best ` +
        `words are ${Math.max(0, ...margins).toFixed(3)} apart or less; logprobs differ by ${noise.toFixed(3)} at most; ` +
        `${sum("preemptions")} preemptions, ${sum("parkings")} parkings, ${sum("pauses")} pauses, ` +
        `${sum("cachedTokens")} cached tokens, ${sum("acceptedTokens")} right guesses`,
    );
    expect(noise).toBeGreaterThan(0);
    expect(noise).toBeLessThan(0.5);
    // Both of the two best words may have moved, each by the noise, which was seen on half of the tokens only.
    for (const difference of differences) expect(difference.margin, JSON.stringify(difference)).toBeLessThan(4 * noise);
    expect(differences.length).toBeLessThan(answers / 10);
    for (const name of [
      "preemptions",
      "parkings",
      "pauses",
      "cachedTokens",
      "acceptedTokens",
      "sharedSteps",
    ] as const) {
      expect(sum(name), name).toBeGreaterThan(0);
    }
    for (const each of stats) {
      expect(each).toMatchObject({
        queued: 0,
        prefilling: 0,
        decoding: 0,
        paused: 0,
        sequences: 0,
        cellsUsed: 0,
        failed: 0,
      });
    }
  });
});
