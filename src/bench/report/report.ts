import type { BenchResult } from "../bench.js";
import { latencyOf } from "../latency.js";
import { latencyNames, percentiles, throughput } from "../record.js";
import { bareText, cpuText, field, goodputText, latencyTitles, memoryText, milliseconds, share } from "../table.js";
import { html, type Markup } from "./markup.js";
import { latencyPlot, throughputPlot, timelinePlot } from "./plots.js";
import { style } from "./style.js";

/** A run as one HTML page that needs nothing else: no script, no font, no network. */
export function reportHtml({ record, driven }: BenchResult): string {
  const completed = driven.answers.filter(({ ending }) => ending.kind === "completed");
  const latencies = completed.flatMap((answer) => latencyOf(answer) ?? []);
  const plots = latencyNames.map((name) => {
    const values = latencies.flatMap((latency) => latency[name] ?? []);
    return latencyPlot(`${capital(latencyTitles[name])}, ms`, values);
  });
  // About a hundred steps, however long the run.
  const interval = Math.max(0.05, record.duration / 100);
  const rates = throughput(driven.answers, driven.durationMs, interval * 1000);
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${record.label}: tokenloop bench</title>
<style>${{ markup: style }}</style>
</head>
<body>
<main>
<h1>${record.label}</h1>
<p class="sub">${record.model_id}, ${record.date}, tokenloop ${record.tokenloop_version}</p>
${headline(result(record))}
${record.remarks.length === 0 ? "" : html`<ul class="remarks">${record.remarks.map((remark) => html`<li>${remark}</li>`)}</ul>`}
<h2>Latency</h2>
<div class="plots">${plots}</div>
<h2>Over time</h2>
${throughputPlot(rates, record.duration, interval)}
${timelinePlot(record.requests, record.duration)}
<p class="key"><span class="k"><i style="color:var(--wait)"></i>until the first text</span><span><i style="color:var(--bar)"></i>answer</span><span><i style="color:var(--cancelled)"></i>cancelled</span><span><i style="color:var(--failed)"></i>failed</span></p>
<h2>Milliseconds</h2>
${latencyTable(record)}
<h2>Costs</h2>
${facts({
  "CPU per token": cpuText(record),
  memory: memoryText(record),
  "event loop": `late by ${milliseconds(record.resources.event_loop_delay_ms.p99)} ms at p99`,
  "bare loop": bareText(record),
  goodput: goodputText(record),
  "cancels settle in":
    record.cancel_settle_ms === null ? "none cancelled" : `${milliseconds(record.cancel_settle_ms.median)} ms (median)`,
  errors: record.errors_by_type,
})}
<h2>Load</h2>
${facts({
  requests: record.num_prompts,
  concurrency: record.max_concurrency,
  "requests per second": record.request_rate,
  ...record.load,
  warm_up: record.warm_up,
})}
<h2>Target</h2>
${facts(record.target)}
<h2>Machine that sent the load</h2>
${facts(record.environment)}
</main>
</body>
</html>
`;
  return page.markup;
}

type Rec = BenchResult["record"];
const result = (record: Rec): [string, string, string][] => [
  ["output tokens per second", record.output_throughput.toFixed(record.output_throughput >= 100 ? 0 : 1), ""],
  ["requests per second", record.request_throughput.toFixed(2), ""],
  ["first token, median", milliseconds(record.median_ttft_ms), "ms"],
  ["per output token, median", milliseconds(record.median_tpot_ms), "ms"],
  ["prompt from the cache", record.cached_share === null ? "–" : share(record.cached_share), ""],
  ["completed, failed, cancelled", `${record.completed}, ${record.failed}, ${record.cancelled}`, ""],
];

function headline(numbers: readonly [string, string, string][]): Markup {
  return html`<dl class="numbers">${numbers.map(([name, value, unit]) => html`<div><dt>${name}</dt><dd>${value} <small>${unit}</small></dd></div>`)}</dl>`;
}

function latencyTable(record: Rec): Markup {
  const columns = ["mean", "std", "min", ...percentiles.map((percent) => `p${percent}`), "max"];
  return html`<div class="scroll"><table><thead><tr><th></th>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>${latencyNames.map((name) => html`<tr><th scope="row">${capital(latencyTitles[name])}</th>${columns.map((column) => html`<td>${milliseconds(field(record, `${column}_${name}_ms`))}</td>`)}</tr>`)}</tbody></table></div>`;
}

function facts(values: Readonly<Record<string, unknown>>): Markup {
  const rows = Object.entries(values).filter(([, value]) => value !== undefined);
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name.replaceAll("_", " ")}</dt><dd>${factText(value)}</dd></div>`)}</dl>`;
}

function factText(value: unknown): string {
  if (value === null) return "unknown";
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(Number(value.toPrecision(6)));
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value);
  if (Array.isArray(value)) return value.join(", ") || "none";
  return entries.length === 0 ? "none" : entries.map(([name, each]) => `${name}: ${factText(each)}`).join(", ");
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
