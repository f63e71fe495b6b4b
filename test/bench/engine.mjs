// One measurement of the engine: `node engine.mjs MODEL STREAMS PROMPT_TOKENS GENERATED_TOKENS [THREADS [FIELDS]]`.
// N greedy streams through the public API; FIELDS is a file with a JSON array, from which stream i takes the fields of its
// request, i modulo their number. Counts the tokens (the loop's own count: a token may have no text of its own)
// between the moment when the last stream got its first chunk and the end of the first that ends: all of them decode in
// that time, as in the bare loop. Prints one line of JSON.
import { readFileSync } from "node:fs";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { Engine } from "../../dist/index.js";

const [model, ...rest] = process.argv.slice(2);
const [streams, promptTokens, generated, threads = 0] = rest.slice(0, 4).map(Number);
const fields = rest[4] === undefined ? [{}] : JSON.parse(readFileSync(rest[4], "utf8"));

/** Nanoseconds of CPU that the JavaScript thread has used (Linux); elsewhere NaN. */
function threadCpu() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]);
  } catch {
    return Number.NaN;
  }
}

const engine = await Engine.load({
  model,
  parallel: streams,
  contextSize: streams * (promptTokens + generated + 64),
  threads,
});
const words =
  "the of and to in is that for it as was with be by on not he his but at are this have from or had an they".split(" ");
const prompt = (seed) =>
  Array.from({ length: Math.max(1, promptTokens - 16) }, (_, i) => words[(i * 7 + seed * 3) % words.length]).join(" ");

// The histogram's timer wakes the JavaScript thread itself, a thousand times a second: never while CPU is measured.
const delay = process.env.TOKENLOOP_BENCH_DELAY ? monitorEventLoopDelay({ resolution: 1 }) : undefined;
const firsts = new Array(streams).fill(false);
let started = 0;
let ended = 0;
let tokens = 0;
let cpu = 0;
const finishes = await Promise.all(
  firsts.map(async (_, n) => {
    const stream = await engine.chat.completions.create({
      messages: [{ role: "user", content: prompt(n) }],
      temperature: 0,
      max_tokens: generated,
      stream: true,
      ...fields[n % fields.length],
    });
    let finish = null;
    for await (const chunk of stream) {
      const choice = chunk.choices[0];
      finish = choice?.finish_reason ?? finish;
      if (finish !== null && ended === 0) {
        ended = performance.now();
        tokens = engine.stats().generatedTokens - tokens;
        cpu = threadCpu() - cpu;
        delay?.disable();
      }
      if (choice?.delta.content && !firsts[n]) {
        firsts[n] = true;
        if (firsts.every(Boolean)) {
          started = performance.now();
          tokens = engine.stats().generatedTokens;
          cpu = threadCpu();
          delay?.enable();
        }
      }
    }
    return finish;
  }),
);
const stats = engine.stats();
console.log(
  JSON.stringify({
    streams,
    tokens,
    tokens_per_second: tokens / ((ended - started) / 1000),
    js_us_per_token: cpu / 1000 / tokens,
    event_loop_delay_p99_ms: delay ? delay.percentile(99) / 1e6 : null,
    sample_share: stats.sampleMs / stats.loopMs,
    peak_sequences: stats.peakSequences,
    finishes: [...new Set(finishes)],
  }),
);
await engine.close();
