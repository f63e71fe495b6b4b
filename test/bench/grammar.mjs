// What structured output costs, beside llama.cpp's own grammar sampler in the same run: `npm run bench:grammar
// [-- ROUNDS]`.
//
// Masks: each valid text of each schema is cut into tokens of Qwen3 (the longest that fits, first), and a mask over the
// 151,936 tokens is made before every one, by a masker that has seen nothing and once more by one that has seen it all.
// Decode: random weights, which is the worst case, with the usual samplers at temperature 1; eight different schemas.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { here, importTypeScript, median, quantile, run } from "./modules.mjs";
import { endlessSchemas, ownSchemas, sharedSchemas } from "./schemas.mjs";

const rounds = Number(process.argv[2] ?? 3);
const threads = process.env.TOKENLOOP_BENCH_THREADS ?? "2";
const only = process.env.TOKENLOOP_BENCH_ONLY;
const verbose = process.env.TOKENLOOP_BENCH_VERBOSE !== undefined;
/** Masks of llama.cpp's that are timed for a text: each takes 10 ms and more. */
const theirMasks = 6;
/** Tokens of each stream that llama.cpp decodes under a grammar. */
const theirTokens = 32;

const addon = createRequire(import.meta.url)(
  process.env.TOKENLOOP_TEST_NATIVE ?? here("../../build/test/tokenloop_test.node"),
);
const { compileSchema } = await importTypeScript("../../src/schema/index.ts", "schema");
const { ensureModel } = await importTypeScript("../models/qwen3.ts", "fixtures");
const { qwen3Pieces } = await importTypeScript("../models/qwen3-pieces.ts", "pieces");

const pieces = qwen3Pieces();
const byText = new Map(pieces.map((piece, id) => [piece.toString("latin1"), id]));
const ends = new Uint32Array(pieces.length);
pieces.reduce((end, piece, id) => (ends[id] = end + piece.length), 0);
const vocabulary = addon.grammarVocabulary(Buffer.concat(pieces), ends);

function tokenize(text) {
  const whole = Buffer.from(text).toString("latin1");
  const tokens = [];
  for (let at = 0; at < whole.length; ) {
    let length = Math.min(40, whole.length - at);
    while (!byText.has(whole.slice(at, at + length))) --length;
    tokens.push(byText.get(whole.slice(at, at + length)));
    at += length;
  }
  return tokens;
}

/** Microseconds, all of one schema; undefined when it is refused. */
function ours({ schema, values }) {
  const started = performance.now();
  let grammar;
  try {
    grammar = compileSchema(schema).grammar;
  } catch {
    return undefined;
  }
  const parsed = addon.grammar(grammar);
  if (parsed.error) throw new Error(`${parsed.error.message}: ${JSON.stringify(schema)}`);
  const masker = parsed.masker(vocabulary);
  masker.time(parsed.start());
  const first = (performance.now() - started) * 1000;
  // The machine may be busy with other things now and then: the median of three.
  const fresh = [];
  const warm = [];
  let bytes = 0;
  for (let i = 0; i < 3; i++) {
    const again = parsed.masker(vocabulary);
    fresh.push(times(again, parsed, values));
    warm.push(times(again, parsed, values));
    bytes = again.bytes();
  }
  const middle = (runs) => runs[0].map((_, i) => median(runs.map((run) => run[i])));
  return { first, fresh: middle(fresh), warm: middle(warm), bytes };
}

/** Of a mask before each token of each value. */
function times(masker, parsed, values) {
  const all = [];
  for (const value of values) {
    const state = parsed.start();
    for (const id of tokenize(JSON.stringify(value))) {
      const time = masker.time(state);
      // An order of keys that the grammar has not: what follows is no state of it.
      if (!state.acceptToken(id, pieces[id])) break;
      all.push(time);
    }
  }
  return all;
}

function masks() {
  const rows = [...ownSchemas, ...sharedSchemas()];
  for (const row of rows) ours(row); // the engine that runs compileSchema has to warm up, not what it compiles
  const results = rows.map(ours);
  if (verbose) {
    for (const [i, result] of results.entries()) {
      if (result === undefined || result.fresh.length === 0) continue;
      const at = (share) => quantile(result.fresh, share).toFixed(0).padStart(6);
      const sum = result.fresh.reduce((total, time) => total + time, 0);
      console.log(
        `${rows[i].name.padEnd(60)} ${String(result.fresh.length).padStart(5)} tokens, first ${result.first.toFixed(0).padStart(6)}, p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)}, longest ${at(1)}, sum ${sum.toFixed(0).padStart(7)} µs, ${(result.bytes / 1024).toFixed(0)} KiB`,
      );
    }
  }
  const taken = results.filter((result) => result !== undefined);
  return {
    taken: `${taken.length} of ${rows.length}`,
    first: taken.map(({ first }) => first),
    fresh: taken.flatMap(({ fresh }) => fresh),
    warm: taken.flatMap(({ warm }) => warm),
    rows,
  };
}

function theirs(rows, model) {
  const cases = rows.map(({ schema, values: [value] }) => ({
    schema,
    tokens: value === undefined ? [] : tokenize(JSON.stringify(value)).slice(0, theirMasks),
  }));
  const results = run(here("../../build/test/tokenloop_grammar_bench"), [model], {
    input: cases.map((one) => `${JSON.stringify(one)}\n`).join(""),
    quiet: true,
  })
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const taken = results.filter(({ masks_us }) => masks_us.length > 0);
  return {
    taken: `${results.filter(({ error }) => error === "").length} of ${rows.length}`,
    first: taken.map(({ compile_us, masks_us: [mask] }) => compile_us + mask),
    masks: taken.flatMap(({ masks_us }) => masks_us),
  };
}

/** Tokens per second, free and bound, ours and theirs: medians of the rounds, and of the rounds' ratios. */
function decode(model, streams, generated, folder) {
  const file = (name, content) => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(content));
    return path;
  };
  const sampled = (n) => ({ temperature: 1, seed: n });
  const bound = endlessSchemas.map((schema, n) => ({
    temperature: 1,
    seed: n,
    response_format: { type: "json_schema", json_schema: { name: "x", schema } },
  }));
  const fields = {
    free: file(
      "free.json",
      bound.map((_, n) => sampled(n)),
    ),
    bound: file("bound.json", bound),
  };
  const schemas = { free: file("none.json", [null]), bound: file("schemas.json", endlessSchemas) };
  const arguments_ = (tokens) => [model, String(streams), "64", String(tokens), threads];
  const runs = [];
  for (let round = 0; round < rounds; round++) {
    const speeds = {};
    for (const which of round % 2 === 0 ? ["free", "bound"] : ["bound", "free"]) {
      const engine = run(process.execPath, [here("engine.mjs"), ...arguments_(generated), fields[which]]);
      // Theirs may be a hundred times slower: a speed is a speed after fewer tokens, too.
      const tokens = which === "bound" ? theirTokens : generated;
      const program = here("../../build/test/tokenloop_loop_bench");
      const loop = run(program, [...arguments_(tokens), schemas[which]], { quiet: true });
      speeds[which] = [engine, loop].map((output) => JSON.parse(output).tokens_per_second);
    }
    runs.push(speeds);
  }
  return [0, 1].map((who) => ({
    free: median(runs.map(({ free }) => free[who])),
    bound: median(runs.map(({ bound: speeds }) => speeds[who])),
    ratio: median(runs.map(({ free, bound: speeds }) => speeds[who] / free[who])),
  }));
}

const row = (...cells) => console.log(`| ${cells.join(" | ")} |`);
const µs = (values, share) => `${quantile(values, share).toFixed(1)} µs`;
const ms = (values, share) => `${(quantile(values, share) / 1000).toFixed(2)} ms`;
const folder = mkdtempSync(join(tmpdir(), "tokenloop-grammar-"));
try {
  const mine = masks();
  const other = theirs(mine.rows, await ensureModel("tiny-qwen3"));
  row("", "tokenloop", "llama.cpp");
  row("---", "---:", "---:");
  row("schemas taken", mine.taken, other.taken);
  row("schema to first mask, p50", ms(mine.first, 0.5), ms(other.first, 0.5));
  row("schema to first mask, p99", ms(mine.first, 0.99), ms(other.first, 0.99));
  for (const share of [0.5, 0.9, 0.99, 1]) {
    row(share === 1 ? "mask, longest" : `mask, p${100 * share}`, µs(mine.fresh, share), µs(other.masks, share));
  }
  row("mask, p50, seen before", µs(mine.warm, 0.5), "");
  row("mask, p99, seen before", µs(mine.warm, 0.99), "");
  for (const [name, preset, generated] of [
    ["2 layers", "tiny-qwen3", 256],
    ["0.6B-shaped", "qwen3-0.6b-shaped", 48],
  ]) {
    if (only !== undefined && !preset.includes(only)) continue;
    const model = await ensureModel(preset);
    for (const streams of [1, 8]) {
      const cells = decode(model, streams, generated, folder).map(
        ({ free, bound, ratio }) => `${ratio.toFixed(2)} (${bound.toFixed(0)} of ${free.toFixed(0)} tokens/s)`,
      );
      row(`${name}, ${streams} at once: speed kept`, ...cells);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
