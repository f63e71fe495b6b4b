import type { NativeStats } from "../native.js";

/** One line of GET /metrics. Names follow Prometheus's rules: base units, `_total` on what only grows. */
export interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly read: (stats: NativeStats) => number;
}

// biome-ignore format: a table, one row a line
export const metrics: readonly Metric[] = [
  { name: "requests_queued", type: "gauge", help: "Requests that wait for a place.", read: (s) => s.queued },
  { name: "requests_prefilling", type: "gauge", help: "Requests whose prompt is computed.", read: (s) => s.prefilling },
  { name: "requests_decoding", type: "gauge", help: "Requests that generate.", read: (s) => s.decoding },
  { name: "requests_paused", type: "gauge", help: "Of these, requests whose reader is behind.", read: (s) => s.paused },
  { name: "requests_finished_total", type: "counter", help: "Requests that ended with an answer.", read: (s) => s.finished },
  { name: "requests_cancelled_total", type: "counter", help: "Requests that were cancelled.", read: (s) => s.cancelled },
  { name: "requests_cancelled_queued_total", type: "counter", help: "Of these, while they waited.", read: (s) => s.cancelledQueued },
  { name: "requests_cancelled_prefilling_total", type: "counter", help: "Of these, while their prompt was computed.", read: (s) => s.cancelledPrefilling },
  { name: "requests_cancelled_decoding_total", type: "counter", help: "Of these, while they generated.", read: (s) => s.cancelledDecoding },
  { name: "requests_failed_total", type: "counter", help: "Requests that failed.", read: (s) => s.failed },
  { name: "requests_timed_out_total", type: "counter", help: "Of the failed ones, those whose time was up.", read: (s) => s.timedOut },
  { name: "requests_stalled_total", type: "counter", help: "Of the failed ones, those that nobody read.", read: (s) => s.stalled },
  { name: "sequences", type: "gauge", help: "Running requests that hold KV cells.", read: (s) => s.sequences },
  { name: "sequences_peak", type: "gauge", help: "Most sequences in one step.", read: (s) => s.peakSequences },
  { name: "kv_cells", type: "gauge", help: "KV cells.", read: (s) => s.cells },
  { name: "kv_cells_used", type: "gauge", help: "KV cells of running requests.", read: (s) => s.cellsUsed },
  { name: "kv_cells_cached", type: "gauge", help: "KV cells kept for prompts that begin alike.", read: (s) => s.cellsCached },
  { name: "kv_evictions_total", type: "counter", help: "Kept sequences whose cells were freed for others.", read: (s) => s.evictions },
  { name: "preemptions_total", type: "counter", help: "Requests whose cells were taken back, to be computed again.", read: (s) => s.preemptions },
  { name: "parkings_total", type: "counter", help: "Requests that gave their place to others for a while.", read: (s) => s.parkings },
  { name: "pauses_total", type: "counter", help: "Times that a request paused for its reader.", read: (s) => s.pauses },
  { name: "prompt_tokens_total", type: "counter", help: "Prompt tokens that were computed.", read: (s) => s.promptTokens },
  { name: "cached_tokens_total", type: "counter", help: "Prompt tokens whose KV cells were there already.", read: (s) => s.cachedTokens },
  { name: "generated_tokens_total", type: "counter", help: "Tokens that were generated.", read: (s) => s.generatedTokens },
  { name: "drafted_tokens_total", type: "counter", help: "Tokens that were guessed ahead.", read: (s) => s.draftedTokens },
  { name: "accepted_tokens_total", type: "counter", help: "Of these, tokens that were right.", read: (s) => s.acceptedTokens },
  { name: "steps_shared_total", type: "counter", help: "Steps that decoded two or more sequences.", read: (s) => s.sharedSteps },
  { name: "decode_seconds_total", type: "counter", help: "Time in llama_decode.", read: (s) => s.decodeMs / 1000 },
  { name: "sample_seconds_total", type: "counter", help: "Time in sampling.", read: (s) => s.sampleMs / 1000 },
  { name: "loop_seconds_total", type: "counter", help: "Time in the token loop while it had work.", read: (s) => s.loopMs / 1000 },
];

/** The statistics in Prometheus's text format, version 0.0.4. */
export function metricsText(stats: NativeStats): string {
  const lines = metrics.map(({ name, type, help, read }) => sample(`tokenloop_${name}`, type, help, read(stats)));
  return `${lines.join("")}${stepsBySequences(stats)}`;
}

export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

function sample(name: string, type: string, help: string, value: number): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`;
}

/** Steps by how many sequences they decoded: "3-4" is three or four. */
function stepsBySequences({ stepsBySequences: steps }: NativeStats): string {
  const name = "tokenloop_steps_total";
  const lines = steps.map((count, i) => {
    const most = 2 ** i;
    const least = Math.floor(most / 2) + 1;
    return `${name}{sequences="${least >= most ? most : `${least}-${most}`}"} ${count}\n`;
  });
  return `# HELP ${name} Steps of the token loop, by the sequences in them.\n# TYPE ${name} counter\n${lines.join("")}`;
}
