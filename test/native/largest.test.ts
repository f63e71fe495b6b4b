import { describe, expect, it } from "vitest";
import { loadTestAddon, randomSource } from "../support/test-addon.js";

const addon = loadTestAddon();

/** Sorted by value, equals by index: the plain way. */
function reference(logits: Float32Array, count: number): number[] {
  return [...logits.keys()]
    .filter((i) => (logits[i] ?? Number.NaN) > -Infinity)
    .sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0) || a - b)
    .slice(0, count);
}

describe("the largest logits", () => {
  it("are those of a full sort, in its order, for every size around a block", () => {
    const random = randomSource(17);
    for (const size of [1, 2, 15, 16, 17, 127, 128, 129, 1024, 3000, 151_936]) {
      // Few distinct values, so that there are equals.
      const logits = Float32Array.from({ length: size }, () => Math.round(random() * 500) / 10 - 20);
      expect(addon.firstOfLargest(logits)).toBe(reference(logits, 1)[0]);
      for (const count of [1, 2, 40, 1000])
        expect(addon.selectLargest(logits, count)).toEqual(reference(logits, count));
    }
  });

  it("are those of a full sort of what is allowed, however much that is", () => {
    const random = randomSource(18);
    for (const size of [1, 63, 64, 65, 127, 128, 129, 1000, 151_936]) {
      for (const share of [0, 0.001, 0.05, 0.5, 0.99, 1]) {
        const logits = Float32Array.from({ length: size }, () => Math.round(random() * 500) / 10 - 20);
        const allowed = new BigUint64Array(Math.ceil(size / 64));
        const masked = logits.map((logit, i) => {
          // In stretches, so that there are blocks of all kinds.
          if (random() >= (i % 1024 < 512 ? share : share ** 2)) return -Infinity;
          allowed[i >> 6] = (allowed[i >> 6] ?? 0n) | (1n << BigInt(i & 63));
          return logit;
        });
        expect(addon.firstOfLargest(logits, allowed)).toBe(reference(masked, 1)[0] ?? -1);
        for (const count of [1, 40, 128])
          expect(addon.selectLargest(logits, count, allowed)).toEqual(reference(masked, count));
      }
    }
  });

  it("never include NaN or what is banned", () => {
    const logits = Float32Array.from({ length: 2000 }, (_, i) =>
      i % 3 === 0 ? Number.NaN : i % 3 === 1 ? -Infinity : i,
    );
    expect(addon.firstOfLargest(logits)).toBe(1998 - 1);
    expect(addon.selectLargest(logits, 3)).toEqual([1997, 1994, 1991]);
    const none = new Float32Array(1500).fill(Number.NaN);
    expect(addon.firstOfLargest(none)).toBe(-1);
    expect(addon.selectLargest(none, 5)).toEqual([]);
    expect(addon.firstOfLargest(new Float32Array(5).fill(-Infinity))).toBe(-1);
  });
});
