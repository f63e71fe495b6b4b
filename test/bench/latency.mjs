// `node test/bench/latency.mjs MODEL [THREADS]`: what a shared prefix saves, and how fast a cancelled request is gone.
import { performance } from "node:perf_hooks";
import { Engine } from "../../dist/index.js";

const [model, threads = "2"] = process.argv.slice(2);
const engine = await Engine.load({ model, contextSize: 8192, parallel: 8, threads: Number(threads) });
const system = "The quick brown fox jumps over the lazy dog. ".repeat(120);
const params = (question) => ({
  messages: [
    { role: "system", content: system },
    { role: "user", content: question },
  ],
  temperature: 0,
  max_tokens: 4,
  stream: true,
});

/** Milliseconds to the first text, and the usage. */
async function firstToken(question) {
  const began = performance.now();
  let first = 0;
  let usage;
  const stream = await engine.chat.completions.create({ ...params(question), stream_options: { include_usage: true } });
  for await (const chunk of stream) {
    // A token without text of its own ends the wait as well: the chunk with the finish reason.
    if (first === 0 && (chunk.choices[0]?.delta.content || chunk.choices[0]?.finish_reason))
      first = performance.now() - began;
    usage = chunk.usage ?? usage;
  }
  return { ms: first, prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details.cached_tokens };
}

const cold = await firstToken("First?");
const warm = [];
for (let i = 0; i < 5; i++) warm.push(await firstToken(`Question number ${i}?`));
const best = [...warm].sort((a, b) => a.ms - b.ms)[2];
console.log(
  `first token, ${cold.prompt} prompt tokens: cold ${cold.ms.toFixed(0)} ms, ${best.cached} of them cached ${best.ms.toFixed(0)} ms: ${((100 * best.ms) / cold.ms).toFixed(1)} %`,
);

const before = engine.stats();
await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((i) => firstToken(`${i} at once, with another beginning of the end`)));
const after = engine.stats();
console.log(
  `8 at once with that prefix: ${after.promptTokens - before.promptTokens} tokens computed, ${after.cachedTokens - before.cachedTokens} cached`,
);

/** Milliseconds from abort to the rejection, when the cells are free. */
async function cancelled(prompt, after) {
  const controller = new AbortController();
  const promise = engine.chat.completions
    .create(
      { messages: [{ role: "user", content: prompt }], cache_prompt: false, temperature: 0 },
      { signal: controller.signal },
    )
    .catch(() => performance.now());
  await new Promise((resolve) => setTimeout(resolve, after));
  const began = performance.now();
  controller.abort();
  const ms = (await promise) - began;
  if (engine.stats().prefilling !== 0) throw new Error("it is still there");
  return ms;
}

async function report(what, run) {
  const times = [];
  for (let i = 0; i < 40; i++) times.push(await run(i));
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(1);
  console.log(`${what}, cells free after: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`);
}

await report("cancel in the middle of a prompt", (i) => cancelled(system.repeat(3), 50 + 20 * i));

// Beside three that decode: a step of theirs cannot be broken off, so a cancel waits for its end at most.
const controller = new AbortController();
const others = [1, 2, 3].map((i) =>
  engine.chat.completions
    .create(
      { messages: [{ role: "user", content: `Count ${i}.` }], grammar: "root ::= [a-z ] root", temperature: 0 },
      { signal: controller.signal },
    )
    .catch(() => undefined),
);
while (engine.stats().decoding < 3) await new Promise((resolve) => setTimeout(resolve, 5));
await report("cancel in the middle of a prompt, beside 3 that decode", (i) =>
  cancelled(system.repeat(3), 100 + 20 * i),
);
controller.abort();
await Promise.all(others);
await engine.close();
