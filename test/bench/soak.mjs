// `node test/bench/soak.mjs [--minutes 10] [--model PATH]`: a mixed load for a long time. Streams and whole answers, in
// process and through fetch, schemas, several choices, shared beginnings, one in five cancelled at a random moment,
// readers that stand still. At the end nothing may be left: no request, no cell, no handle, and memory has not grown.
// Prints a line every tenth of the time and one line of JSON at the end; exit code 1 says that something grew.
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Engine } from "../../dist/index.js";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    model: { type: "string", default: fileURLToPath(new URL("../models/nano/nano.gguf", import.meta.url)) },
    threads: { type: "string", default: "1" },
    clients: { type: "string", default: "12" },
    seed: { type: "string", default: "1" },
  },
});
const duration = Number(values.minutes) * 60_000;

let state = Number(values.seed) >>> 0;
/** mulberry32. */
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let z = Math.imul(state ^ (state >>> 15), state | 1);
  z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
  return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
}
const upTo = (count) => Math.floor(random() * count);
const pick = (list) => list[upTo(list.length)];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const engine = await Engine.load({
  model: values.model,
  threads: Number(values.threads),
  contextSize: 2048,
  parallel: 6,
  queueSize: 64,
  streamBufferBytes: 8192,
  stallTimeoutMs: 300,
  draftTokens: 4,
});
const system = `You are a helpful assistant. ${"The dog likes the cat, and the cat likes the cow. ".repeat(12)}`;
const words = ["dog", "cat", "cow", "boat", "bird", "fish", "house", "tree"];
const schema = {
  type: "object",
  properties: { name: { type: "string", maxLength: 12 }, age: { type: "integer", minimum: 0, maximum: 120 } },
  required: ["name", "age"],
  additionalProperties: false,
};

const counts = { answers: 0, cancelled: 0, stalled: 0, left: 0, refused: 0, errors: 0 };
const errors = new Map();

function body() {
  const messages = [{ role: "user", content: `Tell me a story about a ${pick(words)} and a ${pick(words)}.` }];
  if (random() < 0.4) messages.unshift({ role: "system", content: system });
  return {
    messages,
    max_tokens: 5 + upTo(100),
    temperature: pick([0, 0.7, 1.2]),
    ...(random() < 0.2 ? { n: 2 } : {}),
    ...(random() < 0.2 ? { logprobs: true, top_logprobs: 3 } : {}),
    ...(random() < 0.2 ? { stop: ["the", "."] } : {}),
    ...(random() < 0.2
      ? { response_format: { type: "json_schema", json_schema: { name: "person", schema, strict: true } } }
      : {}),
    ...(random() < 0.2 ? { prompt_cache_key: pick(words) } : {}),
    ...(random() < 0.1 ? { priority: upTo(3) - 1 } : {}),
  };
}

async function inProcess(signal) {
  const stream = random() < 0.6;
  const answer = await engine.chat.completions.create({ ...body(), stream }, { signal });
  if (!stream) return;
  let chunks = 0;
  const stands = random() < 0.08;
  const leaves = random() < 0.1 ? upTo(20) : Number.POSITIVE_INFINITY;
  for await (const _ of answer) {
    if (stands && chunks === 1) await sleep(random() < 0.3 ? 500 : 50);
    if (++chunks > leaves) {
      counts.left++;
      return;
    }
  }
}

async function throughFetch(signal) {
  const stream = random() < 0.6;
  const response = await engine.fetch("http://local/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body(), stream }),
    signal,
  });
  if (random() < 0.1) {
    await response.body?.cancel();
    counts.left++;
    return;
  }
  const text = await response.text();
  if (response.status === 429) throw Object.assign(new Error("full"), { code: "queue_full" });
  if (!response.ok) throw new Error(`${response.status}: ${text.slice(0, 200)}`);
}

async function client(end) {
  while (performance.now() < end) {
    const controller = new AbortController();
    const cancels = random() < 0.2;
    const timer = cancels ? setTimeout(() => controller.abort(), upTo(60)) : undefined;
    try {
      await (random() < 0.5 ? inProcess : throughFetch)(controller.signal);
      counts.answers++;
    } catch (error) {
      if (controller.signal.aborted) counts.cancelled++;
      else if (error.code === "queue_full") {
        counts.refused++;
        await sleep(5);
      } else if (error.code === "stream_stalled") counts.stalled++;
      else {
        counts.errors++;
        errors.set(String(error.message).slice(0, 120), (errors.get(String(error.message).slice(0, 120)) ?? 0) + 1);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Least squares: what is gained per unit of x. */
function slope(points) {
  const mean = (values_) => values_.reduce((sum, value) => sum + value, 0) / values_.length;
  const [mx, my] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const over = points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0);
  return over / points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
}

/** Without timers, and without the pipes that printing opens. */
const handles = () => process.getActiveResourcesInfo().filter((name) => !/Timeout|Pipe|TTY/.test(name)).length;
const handlesBefore = handles();
const began = performance.now();
const end = began + duration;
const samples = [];
const sampler = setInterval(
  () => {
    samples.push([(performance.now() - began) / 60_000, process.memoryUsage().rss / 2 ** 20]);
  },
  Math.max(50, duration / 200),
);
const reporter = setInterval(() => {
  const [minute, rss] = samples.at(-1) ?? [0, 0];
  console.log(
    `${minute.toFixed(1)} min: ${counts.answers} answers, ${counts.cancelled} cancelled, RSS ${rss.toFixed(0)} MB`,
  );
}, duration / 10);
await Promise.all(Array.from({ length: Number(values.clients) }, () => client(end)));
clearInterval(sampler);
clearInterval(reporter);

await engine.drain();
const stats = engine.stats();
const left = ["queued", "prefilling", "decoding", "paused", "sequences", "cellsUsed"].filter(
  (name) => stats[name] !== 0,
);
await engine.close();
await sleep(50);
// The first half is left to warm up: caches fill, the heap finds its size.
const warm = samples.slice(samples.length >> 1);
const growth = slope(warm) * ((warm.at(-1)?.[0] ?? 0) - (warm[0]?.[0] ?? 0));
const rss = warm.map(([, value]) => value);
const spread = Math.max(...rss) - Math.min(...rss);
const faults = [
  ...left.map((name) => `${stats[name]} ${name} are left`),
  ...(counts.errors > 0 ? [`${counts.errors} unexpected errors: ${JSON.stringify([...errors])}`] : []),
  // Over the second half, in MB: what a garbage collector does is below that, a leak of a few bytes a token above.
  ...(growth > 16 ? [`memory grows by ${growth.toFixed(1)} MB`] : []),
  ...(handles() > handlesBefore ? [`${handles() - handlesBefore} handles are left`] : []),
];
console.log(
  JSON.stringify({
    minutes: Number(values.minutes),
    ...counts,
    tokens: stats.generatedTokens,
    pauses: stats.pauses,
    preemptions: stats.preemptions,
    rss_mb: rss.at(-1),
    rss_spread_mb: spread,
    rss_growth_mb: growth,
    faults,
  }),
);
process.exitCode = faults.length === 0 ? 0 : 1;
