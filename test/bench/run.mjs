// `npm run bench [-- ROUNDS]`: our engine against llama.cpp's bare loop of the same build, on the same batch shapes. The
// two run in turns, round by round, and the result is the median of the rounds' ratios: the machine may be busy with
// other things, but not with other things for one of them alone.
import { here, importTypeScript, median, run as output } from "./modules.mjs";

const rounds = Number(process.argv[2] ?? 5);
const threads = process.env.TOKENLOOP_BENCH_THREADS ?? "2";
const only = process.env.TOKENLOOP_BENCH_ONLY;

const run = (program, args, env) => JSON.parse(output(program, args, { env }));

const { ensureModel } = await importTypeScript("../models/qwen3.ts", "fixtures");
const cases = [];
for (const streams of [1, 4, 8])
  cases.push({ name: "0.6B-shaped Q4_0", preset: "qwen3-0.6b-shaped", streams, generated: 48 });
for (const streams of [1, 8])
  cases.push({ name: "2 layers, 152k vocabulary", preset: "tiny-qwen3", streams, generated: 256 });

console.log(
  `| model | streams | bare loop, tokens/s | engine, tokens/s | ratio (median of ${rounds}) | JS CPU per token | event-loop delay p99 |`,
);
console.log("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
for (const { name, preset, streams, generated } of cases) {
  if (only !== undefined && !preset.includes(only)) continue;
  const model = await ensureModel(preset);
  const arguments_ = [model, String(streams), "64", String(generated), threads];
  const results = [];
  for (let round = 0; round < rounds; round++) {
    const bare = () => run(here("../../build/test/tokenloop_loop_bench"), arguments_);
    const ours = () => run(process.execPath, [here("engine.mjs"), ...arguments_]);
    // Who goes first alternates.
    const pair = round % 2 === 0 ? { bare: bare(), ours: ours() } : { ours: ours(), bare: bare() };
    results.push({ ...pair, ratio: pair.ours.tokens_per_second / pair.bare.tokens_per_second });
  }
  const { event_loop_delay_p99_ms: delay } = run(process.execPath, [here("engine.mjs"), ...arguments_], {
    TOKENLOOP_BENCH_DELAY: "1",
  });
  const middle = (pick) => median(results.map(pick));
  console.log(
    `| ${[
      name,
      streams,
      middle((r) => r.bare.tokens_per_second).toFixed(1),
      middle((r) => r.ours.tokens_per_second).toFixed(1),
      `${middle((r) => r.ratio).toFixed(3)} (${results.map((r) => r.ratio.toFixed(2)).join(" ")})`,
      `${middle((r) => r.ours.js_us_per_token).toFixed(1)} µs`,
      `${delay.toFixed(1)} ms`,
    ].join(" | ")} |`,
  );
}
