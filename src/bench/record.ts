import type { Answer, Ending } from "./answer.js";
import type { Driven } from "./drive.js";
import { type Latency, latencyOf, tokensOf } from "./latency.js";
import type { Resources } from "./monitor.js";
import { isGood, type Slo } from "./slo.js";
import { perInterval, sum, summarise } from "./statistics.js";

/** Percentiles of every latency. */
export const percentiles = [50, 90, 95, 99, 99.9] as const;
export const latencyNames = ["ttft", "tpot", "itl", "icl", "e2el"] as const;
export type LatencyName = (typeof latencyNames)[number];

type Statistic = "mean" | "median" | "std" | "min" | "max" | `p${(typeof percentiles)[number]}`;
export type LatencyFields = { [Field in `${Statistic}_${LatencyName}_ms`]: number };

/** A ratio to llama.cpp's bare loop, or why there is none. */
export type BareLoop =
  | {
      /** Tokens per second while all streams decode, by round. */
      bare: number[];
      ours: number[];
      /** Median of the rounds' ratios. */
      ratio: number;
    }
  | { ratio: null; reason: string };

/**
 * What a run of the bench brought, under the names of vLLM's benchmark where it has them; its units, too: rates are per
 * second, latencies milliseconds. What follows `tokenloop_version` is ours.
 */
export interface BenchRecord extends LatencyFields {
  /** YYYYMMDD-HHMMSS, local time. */
  date: string;
  endpoint_type: string;
  label: string;
  model_id: string;
  num_prompts: number;
  /** "inf" without a rate. */
  request_rate: number | "inf";
  burstiness: 1;
  max_concurrency: number;
  ramp_up_strategy?: "linear";
  ramp_up_start_rps?: number;
  ramp_up_end_rps?: number;
  /** Seconds. */
  duration: number;
  completed: number;
  failed: number;
  total_input_tokens: number;
  total_output_tokens: number;
  request_throughput: number;
  /** Answers within the SLOs, per second; null without SLOs. */
  request_goodput: number | null;
  output_throughput: number;
  total_token_throughput: number;
  max_output_tokens_per_s: number;
  max_concurrent_requests: number;

  tokenloop_version: string;
  cancelled: number;
  cancel_settle_ms: { median: number; max: number } | null;
  goodput_slo: Slo;
  /** Part of the completed answers that is within the SLOs. */
  goodput_share: number | null;
  /** Number of failures by type, e.g. "429 queue_full". */
  errors_by_type: Record<string, number>;
  /** One message of each type. */
  error_examples: Record<string, string>;
  finish_reasons: Record<string, number>;
  /** Part of the prompt tokens that came from the cache; null where the server does not say. */
  cached_share: number | null;
  /** Milliseconds that requests which were due waited at the client, for a place. */
  client_wait_ms: { median: number; p99: number; max: number };
  resources: Resources;
  bare_loop: BareLoop;
  load: Record<string, unknown>;
  warm_up: Record<string, unknown>;
  target: Record<string, unknown>;
  environment: Record<string, unknown>;
  /** What whoever reads the numbers has to know. */
  remarks: string[];
  requests: RequestRow[];
}

/** One request of the record. */
export interface RequestRow {
  /** Seconds from the start. */
  sent: number;
  ttft_ms: number | null;
  e2el_ms: number;
  input_tokens: number | null;
  cached_tokens: number | null;
  output_tokens: number;
  /** "completed", "cancelled" or the type of the failure. */
  outcome: string;
}

/** The numbers of a record that come from the answers. */
export function measure(driven: Driven, slo: Slo) {
  const { answers, durationMs } = driven;
  const seconds = durationMs / 1000;
  const completed = answers.filter(({ ending }) => ending.kind === "completed");
  const latencies = completed.flatMap((answer) => latencyOf(answer) ?? []);
  const output = sum(completed.map(tokensOf));
  const input = sum(completed.map(({ promptTokens = 0 }) => promptTokens));
  const good = Object.keys(slo).length === 0 ? undefined : latencies.filter((each) => isGood(each, slo)).length;
  const perSecond = (count: number) => (seconds > 0 ? count / seconds : 0);
  return {
    duration: seconds,
    completed: completed.length,
    failed: answers.filter(({ ending }) => ending.kind === "failed").length,
    total_input_tokens: input,
    total_output_tokens: output,
    request_throughput: perSecond(completed.length),
    request_goodput: good === undefined ? null : perSecond(good),
    output_throughput: perSecond(output),
    total_token_throughput: perSecond(input + output),
    max_output_tokens_per_s: summarise(throughput(answers, durationMs, 1000)).maximum,
    max_concurrent_requests: driven.peakConcurrency,
    ...latencyFields(latencies),
    cancelled: answers.filter(({ ending }) => ending.kind === "cancelled").length,
    cancel_settle_ms: settled(answers),
    goodput_slo: slo,
    goodput_share: good === undefined || completed.length === 0 ? null : good / completed.length,
    ...failures(answers),
    finish_reasons: countBy(completed.map(({ finishReason }) => finishReason ?? "none")),
    cached_share: cachedShare(completed),
    client_wait_ms: clientWait(answers),
    requests: [...answers].sort((a, b) => a.index - b.index).map(toRow),
  };
}

function latencyFields(latencies: readonly Latency[]): LatencyFields {
  const values: Record<LatencyName, number[]> = {
    ttft: latencies.map(({ ttft }) => ttft),
    tpot: latencies.flatMap(({ tpot }) => tpot ?? []),
    itl: latencies.flatMap(({ itl }) => itl),
    icl: latencies.flatMap(({ icl }) => icl),
    e2el: latencies.map(({ e2el }) => e2el),
  };
  const entries = latencyNames.flatMap((name): [string, number][] => {
    const summary = summarise(values[name]);
    return [
      [`mean_${name}_ms`, summary.mean],
      [`median_${name}_ms`, summary.percentile(50)],
      [`std_${name}_ms`, summary.std],
      [`min_${name}_ms`, summary.minimum],
      [`max_${name}_ms`, summary.maximum],
      ...percentiles.map((percent): [string, number] => [`p${percent}_${name}_ms`, summary.percentile(percent)]),
    ];
  });
  return Object.fromEntries(entries) as LatencyFields;
}

/**
 * Output tokens per second in intervals of `widthMs`. A piece of text counts as as many tokens as the answer's pieces have
 * on average: nobody says how many each had.
 */
export function throughput(answers: readonly Answer[], durationMs: number, widthMs: number): number[] {
  const events = answers.flatMap((answer) => {
    const weight = answer.pieces.length === 0 ? 0 : tokensOf(answer) / answer.pieces.length;
    return answer.pieces.map((at) => ({ at, weight }));
  });
  return perInterval(events, widthMs, durationMs).map((tokens) => (tokens * 1000) / widthMs);
}

function settled(answers: readonly Answer[]): BenchRecord["cancel_settle_ms"] {
  const times = answers.flatMap(({ ending }) => (ending.kind === "cancelled" ? [ending.settledMs] : []));
  const summary = summarise(times);
  return times.length === 0 ? null : { median: summary.percentile(50), max: summary.maximum };
}

function failures(answers: readonly Answer[]): Pick<BenchRecord, "errors_by_type" | "error_examples"> {
  const failed = answers.flatMap(({ ending }) => (ending.kind === "failed" ? [ending] : []));
  const examples = failed.map(({ type, message }): [string, string] => [type, message.slice(0, 300)]).reverse();
  return { errors_by_type: countBy(failed.map(({ type }) => type)), error_examples: Object.fromEntries(examples) };
}

function cachedShare(completed: readonly Answer[]): number | null {
  const said = completed.filter(({ cachedTokens, promptTokens }) => cachedTokens !== undefined && promptTokens);
  const total = sum(said.map(({ promptTokens = 0 }) => promptTokens));
  return total === 0 ? null : sum(said.map(({ cachedTokens = 0 }) => cachedTokens)) / total;
}

function clientWait(answers: readonly Answer[]): BenchRecord["client_wait_ms"] {
  const summary = summarise(answers.map(({ due, sent }) => Math.max(0, sent - due)));
  return { median: summary.percentile(50), p99: summary.percentile(99), max: summary.maximum };
}

function toRow(answer: Answer): RequestRow {
  const first = answer.pieces[0];
  return {
    sent: answer.sent / 1000,
    ttft_ms: first === undefined ? null : first - answer.sent,
    e2el_ms: answer.ended - answer.sent,
    input_tokens: answer.promptTokens ?? null,
    cached_tokens: answer.cachedTokens ?? null,
    output_tokens: tokensOf(answer),
    outcome: outcomeOf(answer.ending),
  };
}

const outcomeOf = (ending: Ending) => (ending.kind === "failed" ? ending.type : ending.kind);

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
