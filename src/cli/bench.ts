import { writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { bareLoopProgram, runBareLoop } from "../bench/bare-loop.js";
import { type BenchOptions, type BenchResult, runBench } from "../bench/bench.js";
import { coloursFor } from "../bench/colour.js";
import { compareText } from "../bench/compare.js";
import { engineTarget } from "../bench/engine-target.js";
import { dateText } from "../bench/environment.js";
import { benchOptions } from "../bench/flags.js";
import { longest } from "../bench/lengths.js";
import { readRecord } from "../bench/read-record.js";
import { reportHtml } from "../bench/report/report.js";
import { startServer } from "../bench/serve-child.js";
import { serverTarget } from "../bench/server-target.js";
import { readSettings, type Settings } from "../bench/settings.js";
import { recordText } from "../bench/table.js";
import type { Target } from "../bench/target.js";
import { AbortError } from "../errors.js";
import type { EngineOptions } from "../load-options.js";
import { engineOptions, type OptionRow, samplingOptions } from "../options.js";
import { findPackageRoot } from "../package-root.js";
import { engineFlags, flagHelp, type Parsed, parseFlags, samplingFlags } from "./args.js";
import { exit, type Io, UsageError } from "./io.js";
import { loadWithProgress } from "./load.js";
import { ProgressBar } from "./progress.js";

const rows: readonly OptionRow[] = [
  ...benchOptions,
  ...samplingOptions.filter(({ name }) => name === "temperature").map((row) => ({ ...row, default: 0 })),
  ...engineOptions,
];

export const benchHelp = `Usage: tokenloop bench URL|MODEL [options]
       tokenloop bench compare A.json B.json

Measures any server that speaks OpenAI's chat completions (URL as its clients take it, e.g. http://127.0.0.1:8080/v1), or
the engine in this process with a MODEL (a GGUF file), under the same load. Writes a JSON record with the names of vLLM's
benchmark and an HTML page with plots, and prints a table. Engine options are for MODEL; contextSize and parallel are by
default what the load needs.

${flagHelp(rows)}
`;

/** Exit status 1 when no request was completed. */
export async function bench(args: readonly string[], io: Io): Promise<number> {
  const parsed = parseFlags(args, rows);
  if (parsed.values.has("help")) {
    io.stdout.write(benchHelp);
    return exit.ok;
  }
  const [subject, ...rest] = parsed.positionals;
  if (subject === "compare") return compare(rest, parsed, io);
  if (subject === undefined || rest.length > 0) {
    throw new UsageError("tokenloop bench needs one URL of a server or one MODEL (a GGUF file).");
  }
  const interrupted = new AbortController();
  const release = io.onSignal(["SIGINT", "SIGTERM"], () => interrupted.abort(new AbortError("interrupted")));
  try {
    return await measure(subject, parsed, io, interrupted.signal);
  } finally {
    release();
  }
}

async function measure(subject: string, parsed: Parsed, io: Io, signal: AbortSignal): Promise<number> {
  const temperature = samplingFlags(parsed).temperature ?? 0;
  const settings = await readSettings(parsed, temperature);
  const out = String(parsed.values.get("out") || `bench-${dateText(new Date())}`);
  const label = String(parsed.values.get("label") ?? "");
  const both = parsed.values.get("serve") === true;
  if (/^https?:\/\//i.test(subject)) {
    if (both || Object.keys(engineFlags(parsed)).length > 0) {
      throw new UsageError("--serve and engine options are for a MODEL: a server has its own.");
    }
    const apiKey = String(parsed.values.get("apiKey") || process.env.OPENAI_API_KEY || "") || undefined;
    const model = String(parsed.values.get("model") ?? "") || undefined;
    const target = await serverTarget({ baseUrl: toUrl(subject), apiKey, model, signal });
    const bareLoop = { reason: "the server's model and its options are not known here." };
    const result = await run(io, { target, settings, label: label || toUrl(subject).host, bareLoop, signal });
    await write(io, result, out, parsed);
    return result.record.completed > 0 ? exit.ok : exit.failure;
  }
  if (parsed.values.has("model") || parsed.values.has("apiKey")) {
    throw new UsageError("--model and --api-key are for a URL.");
  }
  const options = fittingOptions(settings, engineFlags(parsed));
  const bareLoop = bareLoopFor(subject, options, settings, signal);
  const names = label || basename(subject);

  const engine = await loadWithProgress(io, { model: subject, ...options });
  const inProcess = engineTarget(engine, options);
  const first = await run(io, { target: inProcess, settings, label: `${names}, in process`, bareLoop, signal });
  await write(io, first, both ? `${out}-engine` : out, parsed);
  if (!both) return first.record.completed > 0 ? exit.ok : exit.failure;

  const server = await startServer(subject, options, signal);
  try {
    const target = await serverTarget({ baseUrl: server.baseUrl, pid: server.pid, signal });
    const second = await run(io, { target, settings, label: `${names}, tokenloop serve`, bareLoop, signal });
    await write(io, second, `${out}-serve`, parsed);
    if (parsed.values.get("json") !== true) {
      io.stdout.write(`${compareText({ ...first.record }, { ...second.record }, coloursFor(io.stdout))}\n`);
    }
    return first.record.completed > 0 && second.record.completed > 0 ? exit.ok : exit.failure;
  } finally {
    await server.stop();
  }
}

/** What the load needs, where nothing else is asked for. */
function fittingOptions({ load }: Settings, given: EngineOptions): EngineOptions {
  const each = longest(load.promptTokens) + longest(load.outputTokens) + 64;
  const parallel = given.parallel ?? Math.min(256, load.concurrency);
  return { parallel, contextSize: parallel * each, queueSize: Math.max(512, load.concurrency), ...given };
}

function bareLoopFor(
  model: string,
  options: EngineOptions,
  { bareRounds: rounds }: Settings,
  signal: AbortSignal,
): BenchOptions["bareLoop"] {
  const program = bareLoopProgram();
  if (rounds === 0) return { reason: "it was not asked for." };
  if (program === undefined)
    return { reason: "only a clone of tokenloop that was built for its tests has the program." };
  return { rounds, run: (shape) => runBareLoop(program, model, shape, Number(options.threads ?? 0), signal) };
}

interface RunOptions {
  target: Target;
  settings: Settings;
  label: string;
  bareLoop: BenchOptions["bareLoop"];
  signal: AbortSignal;
}

/** Closes the target. */
async function run(io: Io, { target, settings, label, bareLoop, signal }: RunOptions): Promise<BenchResult> {
  let bar: ProgressBar | undefined;
  let shown = "";
  try {
    return await runBench({
      ...settings,
      target,
      label,
      bareLoop,
      signal,
      version: findPackageRoot()?.version ?? "unknown",
      onPhase(phase, fraction) {
        if (phase !== shown) bar?.end();
        if (phase !== shown || bar === undefined) bar = new ProgressBar(io.stderr, `${label}: ${phase}`);
        shown = phase;
        bar.update(fraction);
      },
    });
  } finally {
    bar?.end();
    await target.close();
  }
}

async function write(io: Io, result: BenchResult, out: string, parsed: Parsed): Promise<void> {
  const json = `${JSON.stringify(result.record, null, 1)}\n`;
  await writeFile(`${out}.json`, json);
  await writeFile(`${out}.html`, reportHtml(result));
  if (parsed.values.get("json") === true) io.stdout.write(json);
  else io.stdout.write(`${recordText(result.record, coloursFor(io.stdout))}  ${out}.json, ${out}.html\n\n`);
}

async function compare(paths: readonly string[], parsed: Parsed, io: Io): Promise<number> {
  const [a, b, ...rest] = paths;
  if (a === undefined || b === undefined || rest.length > 0) {
    throw new UsageError("tokenloop bench compare needs two records: A.json B.json.");
  }
  if (parsed.values.size > 0) throw new UsageError("tokenloop bench compare takes no options.");
  io.stdout.write(compareText(await readRecord(a), await readRecord(b), coloursFor(io.stdout)));
  return exit.ok;
}

function toUrl(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw new UsageError(`'${text}' is not a URL.`);
  }
}
