// `node test/bench/fairness.mjs MODEL [THREADS] [PROMPT_TOKENS]`: seven streams decode when a long prompt arrives. How long do they wait for
// their next token meanwhile, and how long does the prompt take, against its time alone? The same with chunks of 512
// tokens whatever they take, which is what a server with a fixed batch does. Prints a table and one line of JSON.
import { performance } from "node:perf_hooks";
import { Engine } from "../../dist/index.js";

const [model, threads = "2", promptTokens = "4000"] = process.argv.slice(2);
const stepTargetMs = 50;
const words = "the of and to in is that for it as was with be by on not he his but at are this have from".split(" ");
const prompt = (seed, count) =>
  Array.from({ length: count }, (_, i) => words[(i * 7 + seed * 5) % words.length]).join(" ");
const quantile = (values, share) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length === 0 ? Number.NaN : sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
};

async function measure(options) {
  const engine = await Engine.load({ model, contextSize: 12288, parallel: 8, threads: Number(threads), ...options });
  /** Milliseconds to the first text of a long prompt. */
  const firstToken = async (seed) => {
    const began = performance.now();
    const body = { messages: [{ role: "user", content: prompt(seed, Number(promptTokens)) }], cache_prompt: false };
    const stream = await engine.chat.completions.create({ ...body, temperature: 0, max_tokens: 1, stream: true });
    for await (const { choices } of stream) if (choices[0]?.delta.content || choices[0]?.finish_reason) break;
    return performance.now() - began;
  };
  const alone = [];
  for (let i = 0; i < 3; i++) alone.push(await firstToken(i));

  // Seven streams that go on as long as they are asked to.
  const controller = new AbortController();
  const gaps = [];
  let busy = false;
  let started = 0;
  const streams = Array.from({ length: 7 }, async (_, i) => {
    const body = { messages: [{ role: "user", content: prompt(100 + i, 40) }], grammar: "root ::= [a-z ] root" };
    const stream = await engine.chat.completions.create(
      { ...body, temperature: 0, max_tokens: 1000, stream: true },
      { signal: controller.signal },
    );
    let last = 0;
    try {
      for await (const { choices } of stream) {
        if (!choices[0]?.delta.content) continue;
        const now = performance.now();
        if (last === 0) started++;
        else if (busy) gaps.push(now - last);
        last = now;
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  });
  while (started < 7) await new Promise((resolve) => setTimeout(resolve, 5));
  // What a step of theirs takes without a prompt.
  const quiet = engine.stats();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const before = engine.stats();
  const decodeMs = 1000 / ((before.generatedTokens - quiet.generatedTokens) / 7);
  const began = performance.now();
  busy = true;
  const beside = [];
  for (let i = 0; i < 3; i++) beside.push(await firstToken(10 + i));
  busy = false;
  const elapsed = performance.now() - began;
  const after = engine.stats();
  controller.abort();
  await Promise.all(streams);
  await engine.close();
  // The part of the time that their tokens take: what is left is the prompt's own.
  const decoded = after.generatedTokens - before.generatedTokens - 3;
  const share = ((decoded / 7) * decodeMs) / elapsed;
  return {
    decode_step_ms: decodeMs,
    decode_share: share,
    itl_p50_ms: quantile(gaps, 0.5),
    itl_p99_ms: quantile(gaps, 0.99),
    itl_max_ms: quantile(gaps, 1),
    ttft_alone_ms: quantile(alone, 0.5),
    ttft_beside_ms: quantile(beside, 0.5),
    ttft_ratio: quantile(beside, 0.5) / quantile(alone, 0.5),
    ttft_ratio_without_decode: (quantile(beside, 0.5) * (1 - share)) / quantile(alone, 0.5),
    decoded_per_second: ((after.generatedTokens - before.generatedTokens) * 1000) / elapsed,
  };
}

const results = {};
for (const [name, options] of [
  [`steps of ${stepTargetMs} ms`, { stepTargetMs }],
  ["chunks of 512 tokens", { stepTargetMs: 60000, batchSize: 512 }],
]) {
  results[name] = await measure(options);
}
console.log(
  "| 7 streams, and a prompt | ITL p50 | ITL p99 | longest | prompt alone | beside them | ratio | tokens/s of the 7 |",
);
console.log("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
for (const [name, r] of Object.entries(results)) {
  const ms = (value) => `${value.toFixed(0)} ms`;
  console.log(
    `| ${name} | ${ms(r.itl_p50_ms)} | ${ms(r.itl_p99_ms)} | ${ms(r.itl_max_ms)} | ${ms(r.ttft_alone_ms)} | ${ms(r.ttft_beside_ms)} | ${r.ttft_ratio.toFixed(2)} | ${r.ttft_ratio_without_decode.toFixed(2)} | ${ms(r.decode_step_ms)} | ${r.decoded_per_second.toFixed(0)} |`,
  );
}
console.log(JSON.stringify({ model, threads: Number(threads), prompt_tokens: Number(promptTokens), results }));
