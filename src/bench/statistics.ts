/** What a list of measurements comes to. */
export interface Summary {
  readonly count: number;
  readonly mean: number;
  /** Of the whole population (divided by n), as numpy's. */
  readonly std: number;
  readonly minimum: number;
  readonly maximum: number;
  /** @param percent 0..100 */
  percentile(percent: number): number;
}

/** Of an empty list everything is 0, as in vLLM's records. */
export function summarise(values: readonly number[]): Summary {
  const sorted = Float64Array.from(values).sort();
  const count = sorted.length;
  if (count === 0) return { count, mean: 0, std: 0, minimum: 0, maximum: 0, percentile: () => 0 };
  const mean = sum(sorted) / count;
  const variance = sorted.reduce((total, value) => total + (value - mean) ** 2, 0) / count;
  return {
    count,
    mean,
    std: Math.sqrt(variance),
    minimum: at(sorted, 0),
    maximum: at(sorted, count - 1),
    percentile: (percent) => percentileOf(sorted, percent),
  };
}

/** Between two neighbours it is on the line that joins them: numpy's default, which vLLM's records use. */
function percentileOf(sorted: Float64Array, percent: number): number {
  const place = (Math.min(100, Math.max(0, percent)) / 100) * (sorted.length - 1);
  const below = Math.floor(place);
  const low = at(sorted, below);
  return low + (at(sorted, Math.min(below + 1, sorted.length - 1)) - low) * (place - below);
}

export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

export function median(values: readonly number[]): number {
  return summarise(values).percentile(50);
}

function at(values: Float64Array, index: number): number {
  return values[index] ?? 0;
}

/** Counts of values per bin; bin i holds the values in [edges[i], edges[i + 1]), the last one its upper edge, too. */
export interface Histogram {
  readonly edges: number[];
  readonly counts: number[];
}

/**
 * Bins of equal width on a logarithmic scale from the smallest positive value to the largest: latencies are spread over
 * decades. Values of 0 and below fall into the first bin.
 */
export function logHistogram(values: readonly number[], bins: number): Histogram {
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return { edges: [0, 1], counts: [values.length] };
  const low = positive.reduce((least, value) => Math.min(least, value), Infinity);
  // A single value has a bin of its own, too.
  const high = positive.reduce((most, value) => Math.max(most, value), low * 1.01);
  const factor = (high / low) ** (1 / bins);
  const edges = Array.from({ length: bins + 1 }, (_, i) => (i === bins ? high : low * factor ** i));
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) {
    const bin = value <= low ? 0 : Math.min(bins - 1, Math.floor(Math.log(value / low) / Math.log(factor)));
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return { edges, counts };
}

/** Events per interval: element i counts the weight of those in [i, i + 1) · width. */
export function perInterval(events: readonly { at: number; weight: number }[], width: number, end: number): number[] {
  const totals = new Array<number>(Math.max(1, Math.ceil(end / width))).fill(0);
  for (const { at: when, weight } of events) {
    const index = Math.min(totals.length - 1, Math.max(0, Math.floor(when / width)));
    totals[index] = (totals[index] ?? 0) + weight;
  }
  return totals;
}
