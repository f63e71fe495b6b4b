import { describe, expect, it } from "vitest";
import { loadTestAddon, randomSource } from "../support/test-addon.js";

const addon = loadTestAddon();

describe("logSumExp", () => {
  it("is exact to a millionth, for every size and spread", () => {
    const random = randomSource(29);
    for (const size of [1, 15, 16, 17, 1023, 1025, 151_936]) {
      for (const spread of [0, 1e-3, 1, 30, 200]) {
        const logits = Float32Array.from({ length: size }, () => (random() - 0.5) * spread + 11);
        const most = logits.reduce((largest, logit) => Math.max(largest, logit), -Infinity);
        const exact = most + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
        expect(Math.abs(addon.logSumExp(logits) - exact), `${size}, ${spread}`).toBeLessThan(1e-6);
      }
    }
  });

  it("counts banned tokens as nothing, and has no answer where there is none", () => {
    expect(addon.logSumExp(Float32Array.of(0, -Infinity, 0))).toBeCloseTo(Math.log(2), 6);
    expect(addon.logSumExp(Float32Array.of(-Infinity))).toBe(-Infinity);
    expect(addon.logSumExp(Float32Array.of(Number.NaN))).toBe(-Infinity);
  });
});
