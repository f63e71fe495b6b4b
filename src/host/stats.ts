import type { Engine } from "../engine.js";
import type { NativeStats } from "../native.js";
import { noStats } from "../no-stats.js";

/** Counters of several engines as one: sums, and of peaks the highest. */
export function sumStats(engines: readonly Engine[]): NativeStats {
  const sum: Record<string, number> = {};
  const steps: number[] = [];
  for (const engine of engines) {
    const { stepsBySequences, peakSequences, ...counters } = engine.stats();
    for (const [name, value] of Object.entries(counters)) sum[name] = (sum[name] ?? 0) + value;
    sum.peakSequences = Math.max(sum.peakSequences ?? 0, peakSequences);
    for (const [i, count] of stepsBySequences.entries()) steps[i] = (steps[i] ?? 0) + count;
  }
  return { ...noStats, ...sum, stepsBySequences: steps };
}
