import type { Random } from "./random.js";

/** When requests come. */
export interface ArrivalOptions {
  /** Mean requests per second; Infinity: all at once, and the concurrency alone holds them back. */
  rate: number;
  /** Requests per second at the start; the rate then grows in a straight line over the requests up to `rate`. */
  rampFrom?: number | undefined;
}

/** Arrival times in seconds, ascending: a Poisson process, i.e. independent exponential gaps, from 0 on. */
export function arrivals(count: number, { rate, rampFrom = rate }: ArrivalOptions, random: Random): number[] {
  if (rate === Infinity) return new Array<number>(count).fill(0);
  let time = 0;
  return Array.from({ length: count }, (_, i) => {
    const share = count > 1 ? i / (count - 1) : 1;
    const now = rampFrom + (rate - rampFrom) * share;
    if (i > 0) time += random.exponential(1 / now);
    return time;
  });
}
