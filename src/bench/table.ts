import type { Colours } from "./colour.js";
import { type BenchRecord, latencyNames, percentiles } from "./record.js";

/** What each latency is, in a line. */
export const latencyTitles = {
  ttft: "time to first token",
  tpot: "time per output token",
  itl: "inter-token latency",
  icl: "inter-chunk latency",
  e2el: "end to end",
} as const;

/** A record for a terminal. */
export function recordText(record: BenchRecord, colours: Colours): string {
  const { bold, dim, bad } = colours;
  const columns = ["mean", "median", ...percentiles.slice(1).map((percent) => `p${percent}`), "max"] as const;
  const header = `${"ms".padStart(24)}${columns.map((name) => name.padStart(10)).join("")}`;
  const rows = latencyNames.map((name) => {
    const cells = columns.map((column) => milliseconds(field(record, `${column}_${name}_ms`)).padStart(10));
    return `  ${latencyTitles[name].padEnd(22)}${cells.join("")}`;
  });
  const failed = record.failed > 0 ? bad(`${record.failed} failed`) : "0 failed";
  const asked = Number(record.load.cancel_share) > 0;
  const cancelled = record.cancelled > 0 || asked ? `, ${record.cancelled} cancelled` : "";
  return [
    bold(`${record.label}: ${record.model_id}`),
    line("requests", `${record.completed} completed, ${failed}${cancelled} in ${record.duration.toFixed(2)} s`),
    ...Object.entries(record.errors_by_type).map(([type, count]) =>
      line("", bad(`${count} × ${type}: ${record.error_examples[type] ?? ""}`)),
    ),
    line("throughput", throughputText(record)),
    line("goodput", goodputText(record)),
    line("prompt tokens", `${record.total_input_tokens}, ${share(record.cached_share)} from the cache`),
    line("CPU per token", cpuText(record)),
    line("memory", memoryText(record)),
    line("event loop", `late by ${milliseconds(record.resources.event_loop_delay_ms.p99)} ms at p99`),
    line("bare loop", bareText(record)),
    "",
    dim(header),
    ...rows,
    ...(record.remarks.length > 0 ? ["", ...record.remarks.map((remark) => dim(`  ! ${remark}`))] : []),
    "",
  ].join("\n");
}

export function throughputText(record: BenchRecord): string {
  const { request_throughput: requests, output_throughput: output, total_token_throughput: all } = record;
  return `${rate(requests)} requests/s, ${rate(output)} output tokens/s, ${rate(all)} tokens/s in all`;
}

export function goodputText({ request_goodput: goodput, goodput_share: part, goodput_slo: slo }: BenchRecord): string {
  if (goodput === null) return "no SLO given";
  const limits = Object.entries(slo).map(([name, limit]) => `${name} ≤ ${limit} ms`);
  return `${rate(goodput)} requests/s (${share(part)} of the completed) with ${limits.join(", ")}`;
}

export function cpuText({ resources }: BenchRecord): string {
  const { cpu_us_per_output_token: all, js_cpu_us_per_output_token: js } = resources;
  if (all === null) return "unknown: another machine's, or no /proc";
  return `${all.toFixed(0)} µs in all threads${js === null ? "" : `, ${js.toFixed(0)} µs in the JavaScript thread`}`;
}

export function memoryText({ resources: { rss_start_bytes: start, rss_peak_bytes: peak } }: BenchRecord): string {
  return start === null || peak === null ? "unknown" : `${mebibytes(start)} at the start, ${mebibytes(peak)} at most`;
}

export function bareText({ bare_loop: bare }: BenchRecord): string {
  if (bare.ratio === null) return "not compared";
  return `${bare.ratio.toFixed(3)} of its speed (${bare.ours.map((ours, i) => `${rate(ours)}/${rate(bare.bare[i] ?? 0)}`).join(", ")} tokens/s)`;
}

/** Of a record, by a name that is made up. */
export function field(record: BenchRecord, name: string): number {
  const value = (record as unknown as Record<string, unknown>)[name];
  return typeof value === "number" ? value : Number.NaN;
}

export function milliseconds(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
}

const rate = (value: number) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
export const share = (value: number | null) => (value === null ? "an unknown part" : `${(value * 100).toFixed(1)} %`);
const mebibytes = (bytes: number) => `${(bytes / 1048576).toFixed(0)} MiB`;
const line = (label: string, text: string) => `  ${label.padEnd(15)}${text}`;
