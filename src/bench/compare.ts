import type { Colours } from "./colour.js";
import { latencyNames } from "./record.js";

/** A record of this bench, or of vLLM's: what one lacks is not compared. */
export type AnyRecord = Readonly<Record<string, unknown>>;

/** One number of two records. */
export interface Difference {
  readonly name: string;
  readonly a: number;
  readonly b: number;
  /** b / a */
  readonly ratio: number;
  /** Whether b is better (1) or worse (-1), by more than 2 %. */
  readonly verdict: -1 | 0 | 1;
}

const rates = ["request_throughput", "request_goodput", "output_throughput", "total_token_throughput"];
const costs = ["resources.cpu_us_per_output_token", "resources.rss_peak_bytes"];
const statistics = ["mean", "median", "p99"];
const noticeable = 0.02;

export function compareRecords(a: AnyRecord, b: AnyRecord): Difference[] {
  const latencies = latencyNames.flatMap((name) => statistics.map((statistic) => `${statistic}_${name}_ms`));
  return [
    ...rates.map((name) => difference(name, a, b, 1)),
    ...[...latencies, ...costs].map((name) => difference(name, a, b, -1)),
  ].filter((each) => Number.isFinite(each.a) && Number.isFinite(each.b) && (each.a !== 0 || each.b !== 0));
}

function difference(path: string, a: AnyRecord, b: AnyRecord, better: 1 | -1): Difference {
  const left = lookUp(a, path);
  const right = lookUp(b, path);
  const change = (right / left - 1) * better;
  const verdict = Math.abs(change) <= noticeable ? 0 : change > 0 ? 1 : -1;
  return { name: path.split(".").at(-1) ?? path, a: left, b: right, ratio: right / left, verdict };
}

function lookUp(record: AnyRecord, path: string): number {
  const value = path
    .split(".")
    .reduce<unknown>((at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined), record);
  return typeof value === "number" ? value : Number.NaN;
}

/** What makes two records no measurements of the same thing. */
export function mismatches(a: AnyRecord, b: AnyRecord): string[] {
  const left = circumstances(a);
  const right = circumstances(b);
  const text = (value: unknown) => JSON.stringify(value) ?? "unknown";
  return [...new Set([...Object.keys(left), ...Object.keys(right)])]
    .filter((name) => text(left[name]) !== text(right[name]))
    .map((name) => `${name}: ${text(left[name])} and ${text(right[name])}`);
}

function circumstances(record: AnyRecord): Record<string, unknown> {
  const { num_prompts, request_rate, max_concurrency, ramp_up_start_rps, model_id, warm_up } = record;
  // What was measured of the target is no setting.
  const { tokens_per_word: _, template_tokens: __, ...load } = isObject(record.load) ? record.load : {};
  const { cpu, cpu_count, node } = isObject(record.environment) ? record.environment : {};
  return {
    num_prompts,
    request_rate,
    max_concurrency,
    ramp_up_start_rps,
    model_id,
    warm_up,
    ...load,
    cpu,
    cpu_count,
    node,
  };
}

/** Two records for a terminal. */
export function compareText(a: AnyRecord, b: AnyRecord, { bold, dim, good, bad }: Colours): string {
  const rows = compareRecords(a, b).map(({ name, a: left, b: right, ratio, verdict }) => {
    const colour = verdict === 0 ? dim : verdict > 0 ? good : bad;
    const word = verdict === 0 ? "same" : verdict > 0 ? "better" : "worse";
    const ratioText = Number.isFinite(ratio) ? ratio.toFixed(3) : "–";
    const numbers = `${number(left).padStart(14)}${number(right).padStart(14)}`;
    return `  ${name.padEnd(26)}${numbers}  ${colour(`${ratioText.padStart(8)}  ${word}`)}`;
  });
  const different = mismatches(a, b);
  const title = (record: AnyRecord) => `${String(record.label ?? record.model_id)} (${String(record.date)})`;
  return [
    bold(`A: ${title(a)}`),
    bold(`B: ${title(b)}`),
    "",
    dim(`  ${"".padEnd(26)}${"A".padStart(14)}${"B".padStart(14)}  ${"B / A".padStart(8)}`),
    ...rows,
    ...(different.length > 0
      ? ["", bad("  Not the same load or machine:"), ...different.map((each) => `    ${each}`)]
      : []),
    "",
  ].join("\n");
}

const number = (value: number) => (Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(4));
const isObject = (value: unknown): value is AnyRecord => typeof value === "object" && value !== null;
