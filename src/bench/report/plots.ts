import type { RequestRow } from "../record.js";
import { logHistogram, summarise } from "../statistics.js";
import { milliseconds } from "../table.js";
import { linearScale, logScale, tickText } from "./axis.js";
import { html, type Markup } from "./markup.js";

/** How latencies are spread: a histogram on a logarithmic scale, with the median and p99 marked. */
export function latencyPlot(title: string, values: readonly number[]): Markup {
  const [width, height, left, bottom, top] = [360, 190, 14, 30, 26];
  const summary = summarise(values);
  if (values.length === 0) return figure(title, "nothing measured", width, height, []);
  const { edges, counts } = logHistogram(values, 36);
  const low = edges[0] ?? 0.01;
  const high = edges.at(-1) ?? 1;
  const x = logScale(Math.max(low, 1e-3), Math.max(high, 2e-3), left, width - 2 * left);
  const most = counts.reduce((largest, count) => Math.max(largest, count), 1);
  const y = (count: number) => height - bottom - (count / most) * (height - bottom - top);
  const bars = counts.map((count, i) => {
    if (count === 0) return "";
    const [from, to] = [x(edges[i] ?? low), x(edges[i + 1] ?? high)];
    const label = `${milliseconds(edges[i] ?? 0)} to ${milliseconds(edges[i + 1] ?? 0)} ms: ${count}`;
    return html`<rect class="bar" x="${from}" y="${y(count)}" width="${Math.max(1, to - from - 1)}" height="${height - bottom - y(count)}"><title>${label}</title></rect>`;
  });
  const marks = [50, 99].map((percent) => {
    const value = Math.max(summary.percentile(percent), low);
    const at = x(value);
    const anchor = at > width * 0.7 ? "end" : "start";
    const line = percent === 50 ? top - 12 : top;
    return html`<line class="mark" x1="${at}" x2="${at}" y1="${line - 8}" y2="${height - bottom}"/><text class="mark-text" x="${at + (anchor === "end" ? -4 : 4)}" y="${line}" text-anchor="${anchor}">p${String(percent)} ${milliseconds(value)}</text>`;
  });
  const ticks = x.ticks.map(
    (tick) => html`<text class="tick" x="${x(tick)}" y="${height - 12}" text-anchor="middle">${tickText(tick)}</text>`,
  );
  const base = html`<line class="axis" x1="${left}" x2="${width - left}" y1="${height - bottom}" y2="${height - bottom}"/>`;
  const said = `median ${milliseconds(summary.percentile(50))} ms, p99 ${milliseconds(summary.percentile(99))} ms, of ${values.length}`;
  return figure(title, said, width, height, [...bars, base, ...ticks, ...marks]);
}

/** Output tokens per second over the run. @param seconds the run's, @param width of an interval, in seconds */
export function throughputPlot(rates: readonly number[], seconds: number, interval: number): Markup {
  const [width, height, left, bottom, top] = [1120, 200, 52, 30, 12];
  const highest = rates.reduce((most, rate) => Math.max(most, rate), 0);
  const y = linearScale(highest, height - bottom, -(height - bottom - top));
  const x = linearScale(seconds, left, width - left - 14, 8);
  // A step for each interval; the last one may be shorter.
  const steps = rates.flatMap((rate, i) => {
    const from = x(Math.min(seconds, i * interval));
    const to = x(Math.min(seconds, (i + 1) * interval));
    return [`${round(from)},${round(y(rate))}`, `${round(to)},${round(y(rate))}`];
  });
  const area = `${round(x(0))},${round(y(0))} ${steps.join(" ")} ${round(x(seconds))},${round(y(0))}`;
  return figure(
    "Output tokens per second",
    `at most ${highest.toFixed(0)}, over ${seconds.toFixed(1)} s`,
    width,
    height,
    [
      ...gridLines(y, left, width - 14),
      html`<polygon class="area" points="${area}"/><polyline class="line" points="${steps.join(" ")}"/>`,
      ...secondTicks(x, seconds, height - 12),
    ],
  );
}

/** Each request as a line: from sent to first text, and from there to its end. */
export function timelinePlot(requests: readonly RequestRow[], seconds: number): Markup {
  const shown = requests.slice(0, 400);
  const row = shown.length > 120 ? 3 : shown.length > 48 ? 6 : 10;
  const [width, left, bottom, top] = [1120, 52, 30, 6];
  const height = top + shown.length * row + bottom;
  const x = linearScale(seconds, left, width - left - 14, 8);
  const lines = [...shown]
    .sort((a, b) => a.sent - b.sent)
    .map((request, i) => {
      const y = top + i * row;
      const end = request.sent + request.e2el_ms / 1000;
      const first = request.ttft_ms === null ? end : request.sent + request.ttft_ms / 1000;
      const kind = ["completed", "cancelled"].includes(request.outcome) ? request.outcome : "failed";
      const text = [
        `${request.outcome} after ${milliseconds(request.e2el_ms)} ms`,
        request.ttft_ms === null ? "no text" : `first text after ${milliseconds(request.ttft_ms)} ms`,
        `${request.input_tokens ?? "?"} prompt tokens, ${request.cached_tokens ?? 0} of them cached`,
        `${request.output_tokens} tokens`,
      ].join("\n");
      const thick = Math.max(2, row - 2);
      return html`<g><title>${text}</title><rect class="wait" x="${x(request.sent)}" y="${y}" width="${Math.max(0.5, x(first) - x(request.sent))}" height="${thick}"/><rect class="answer ${kind}" x="${x(first)}" y="${y}" width="${Math.max(1, x(end) - x(first))}" height="${thick}"/></g>`;
    });
  const more = requests.length > shown.length ? `, the first ${shown.length} of ${requests.length}` : "";
  return figure("Requests over time", `from sent to first text, and to the end${more}`, width, height, [
    ...lines,
    ...secondTicks(x, seconds, height - 12),
  ]);
}

function gridLines(y: ReturnType<typeof linearScale>, from: number, to: number): Markup[] {
  return y.ticks.map(
    (tick) =>
      html`<line class="grid" x1="${from}" x2="${to}" y1="${y(tick)}" y2="${y(tick)}"/><text class="tick" x="${from - 8}" y="${y(tick) + 4}" text-anchor="end">${tickText(tick)}</text>`,
  );
}

function secondTicks(x: ReturnType<typeof linearScale>, seconds: number, y: number): Markup[] {
  return x.ticks
    .filter((tick) => tick <= seconds * 1.02)
    .map((tick) => html`<text class="tick" x="${x(tick)}" y="${y}" text-anchor="middle">${tickText(tick)} s</text>`);
}

function figure(
  title: string,
  said: string,
  width: number,
  height: number,
  body: readonly (Markup | string)[],
): Markup {
  return html`<figure><figcaption>${title} <span>${said}</span></figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}: ${said}">${body}</svg></figure>`;
}

const round = (value: number) => Math.round(value * 10) / 10;
