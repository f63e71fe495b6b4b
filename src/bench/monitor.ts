import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { summarise } from "./statistics.js";
import type { Target, Usage } from "./target.js";

/** What a load took of the machine. Milliseconds and bytes; null where it cannot be known. */
export interface Resources {
  /** Of the process that computes: this one, or the server's. */
  cpu_ms: number | null;
  cpu_us_per_output_token: number | null;
  /** Of its JavaScript thread alone. */
  js_cpu_ms: number | null;
  js_cpu_us_per_output_token: number | null;
  rss_start_bytes: number | null;
  /** The most of ten looks a second. */
  rss_peak_bytes: number | null;
  /** Of the process that sends the load: with an engine in it, the same process. */
  event_loop_delay_ms: { mean: number; median: number; p99: number; "p99.9": number; max: number };
}

/** Milliseconds between two looks at the event loop: they wake the thread, so not more than that. */
const resolutionMs = 10;
const lookMs = 100;

/** Looks at a target's process, and at this one's event loop, while a load runs. */
export class Monitor {
  readonly #target: Target;
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });
  readonly #rss: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #before: Usage | undefined;

  constructor(target: Target) {
    this.#target = target;
  }

  async start(): Promise<void> {
    this.#before = await this.#look();
    this.#timer = setInterval(() => void this.#look(), lookMs);
    this.#delay.enable();
  }

  async stop(outputTokens: number): Promise<Resources> {
    this.#delay.disable();
    clearInterval(this.#timer);
    const after = await this.#look();
    const cpu = difference(after?.cpuMs, this.#before?.cpuMs);
    const js = difference(after?.jsCpuMs, this.#before?.jsCpuMs);
    const perToken = (ms: number | null) => (ms === null || outputTokens === 0 ? null : (ms * 1000) / outputTokens);
    return {
      cpu_ms: cpu,
      cpu_us_per_output_token: perToken(cpu),
      js_cpu_ms: js,
      js_cpu_us_per_output_token: perToken(js),
      rss_start_bytes: this.#rss[0] ?? null,
      rss_peak_bytes: this.#rss.length === 0 ? null : summarise(this.#rss).maximum,
      event_loop_delay_ms: delays(this.#delay),
    };
  }

  async #look(): Promise<Usage | undefined> {
    const usage = await this.#target.usage();
    if (usage?.rss !== undefined) this.#rss.push(usage.rss);
    return usage;
  }
}

/** The histogram's times contain the interval itself. */
function delays(histogram: IntervalHistogram): Resources["event_loop_delay_ms"] {
  const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - resolutionMs);
  if (histogram.count === 0) return { mean: 0, median: 0, p99: 0, "p99.9": 0, max: 0 };
  return {
    mean: late(histogram.mean),
    median: late(histogram.percentile(50)),
    p99: late(histogram.percentile(99)),
    "p99.9": late(histogram.percentile(99.9)),
    max: late(histogram.max),
  };
}

function difference(after: number | undefined, before: number | undefined): number | null {
  return after === undefined || before === undefined ? null : after - before;
}
