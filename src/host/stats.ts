import type { Engine } from "../engine.js";
import type { NativeStats } from "../native.js";

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

/** Of no engine at all. */
const noStats: NativeStats = {
  queued: 0,
  prefilling: 0,
  decoding: 0,
  paused: 0,
  finished: 0,
  cancelled: 0,
  failed: 0,
  cancelledQueued: 0,
  cancelledPrefilling: 0,
  cancelledDecoding: 0,
  timedOut: 0,
  stalled: 0,
  sequences: 0,
  cellsUsed: 0,
  cellsCached: 0,
  cells: 0,
  steps: 0,
  stepsBySequences: [],
  promptTokens: 0,
  cachedTokens: 0,
  generatedTokens: 0,
  draftedTokens: 0,
  acceptedTokens: 0,
  sharedSteps: 0,
  peakSequences: 0,
  preemptions: 0,
  parkings: 0,
  pauses: 0,
  evictions: 0,
  decodeMs: 0,
  sampleMs: 0,
  loopMs: 0,
};
