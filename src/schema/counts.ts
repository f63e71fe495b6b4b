/** No text has this many characters, elements or properties: strings end below it. A larger maximum demands nothing. */
const unreachable = 2 ** 29;

/** Minimums beyond this are refused: an answer that long never comes. */
export const largestMinimum = 1_000_000;

/** A `max…` keyword's value, endless when no text can get there. */
export function maximumCount(value: unknown): number {
  const count = Number(value);
  return count >= unreachable ? Number.POSITIVE_INFINITY : count;
}
