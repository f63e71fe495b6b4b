import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { arrivals } from "../../src/bench/arrivals.js";
import { drawLength, longest, parseLengths } from "../../src/bench/lengths.js";
import { type Load, planLoad } from "../../src/bench/plan.js";
import { promptText, tokenRate, wordsFor } from "../../src/bench/prompts.js";
import { Random } from "../../src/bench/random.js";
import { isGood, parseSlo } from "../../src/bench/slo.js";
import { logHistogram, perInterval, sum, summarise } from "../../src/bench/statistics.js";

const folder = mkdtempSync(join(tmpdir(), "tokenloop-bench-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

describe("summaries", () => {
  it("have numpy's percentiles", () => {
    // numpy.percentile([15, 20, 35, 40, 50], [0, 40, 50, 90, 99.9, 100])
    const { percentile } = summarise([50, 15, 40, 20, 35]);
    const found = [0, 40, 50, 90, 99.9, 100].map(percentile);
    for (const [i, value] of [15, 29, 35, 46, 49.96, 50].entries()) expect(found[i]).toBeCloseTo(value, 10);
  });

  it("have the mean, and the standard deviation of the whole population", () => {
    const { count, mean, std, minimum, maximum } = summarise([2, 4, 4, 4, 5, 5, 7, 9]);
    expect({ count, mean, std, minimum, maximum }).toEqual({ count: 8, mean: 5, std: 2, minimum: 2, maximum: 9 });
  });

  it("of one value are that value, of none 0", () => {
    expect(summarise([7]).percentile(99.9)).toBe(7);
    expect(summarise([]).percentile(50)).toBe(0);
    expect(summarise([]).std).toBe(0);
  });

  it("sort numbers as numbers", () => expect(summarise([100, 9, 20]).maximum).toBe(100));
});

describe("histograms", () => {
  it("lose no value", () => {
    const random = new Random(3);
    for (let round = 0; round < 50; round++) {
      const values = Array.from({ length: random.integer(1, 200) }, () =>
        random.next() < 0.2 ? 0 : random.next() ** 8,
      );
      const { edges, counts } = logHistogram(values, 20);
      expect(sum(counts)).toBe(values.length);
      expect(edges).toHaveLength(counts.length + 1);
      for (const [i, edge] of edges.entries()) if (i > 0) expect(edge).toBeGreaterThan(edges[i - 1] ?? 0);
    }
  });

  it("put values into the bin that their edges say", () => {
    const { edges, counts } = logHistogram([1, 10, 10, 100], 2);
    expect(edges.map(Math.round)).toEqual([1, 10, 100]);
    expect(sum(counts)).toBe(4);
    expect(counts[0]).toBeGreaterThanOrEqual(1);
  });

  it("also of one value and of none", () => {
    expect(logHistogram([5, 5], 4).counts.reduce((a, b) => a + b)).toBe(2);
    expect(logHistogram([], 4).counts).toEqual([0]);
  });

  it("over time count the weight in each interval", () => {
    const events = [0, 999, 1000, 2500].map((at, i) => ({ at, weight: i + 1 }));
    expect(perInterval(events, 1000, 2500)).toEqual([3, 3, 4]);
  });
});

describe("random numbers", () => {
  it("are the seed's", () => {
    const draw = (seed: number) =>
      Array.from(
        { length: 4 },
        (
          (random) => () =>
            random.next()
        )(new Random(seed)),
      );
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
  });

  it("are uniform: chi-squared over 64 bins below its 99.99 % quantile", () => {
    const random = new Random(11);
    const counts = new Array<number>(64).fill(0);
    for (let i = 0; i < 64_000; i++) {
      const bin = random.integer(0, 63);
      counts[bin] = (counts[bin] ?? 0) + 1;
    }
    expect(sum(counts.map((count) => (count - 1000) ** 2 / 1000))).toBeLessThan(116);
  });

  it("of two forks have nothing to do with each other", () => {
    const root = new Random(5);
    const [a, b] = [root.fork("a"), root.fork("b")];
    const product = Array.from({ length: 20_000 }, () => (a.next() - 0.5) * (b.next() - 0.5));
    expect(Math.abs(summarise(product).mean)).toBeLessThan(0.003);
  });
});

describe("arrivals", () => {
  it("are all at once without a rate", () => {
    expect(arrivals(3, { rate: Infinity }, new Random(1))).toEqual([0, 0, 0]);
  });

  it("are a Poisson process: gaps with the mean and the spread of an exponential distribution", () => {
    const times = arrivals(20_001, { rate: 50 }, new Random(2));
    const { mean, std, minimum } = summarise(times.slice(1).map((time, i) => time - (times[i] ?? 0)));
    expect(times[0]).toBe(0);
    expect(mean).toBeCloseTo(0.02, 3);
    expect(std / mean).toBeGreaterThan(0.97);
    expect(std / mean).toBeLessThan(1.03);
    expect(minimum).toBeGreaterThanOrEqual(0);
  });

  it("ramp from one rate to another", () => {
    const times = arrivals(10_000, { rate: 100, rampFrom: 10 }, new Random(4));
    const rate = (from: number, to: number) => (to - from) / ((times[to] ?? 0) - (times[from] ?? 0));
    expect(rate(0, 500)).toBeGreaterThan(8);
    expect(rate(0, 500)).toBeLessThan(16);
    expect(rate(9500, 9999)).toBeGreaterThan(80);
    expect(rate(9500, 9999)).toBeLessThan(120);
  });
});

describe("lengths", () => {
  it("are fixed, uniform or a file's", async () => {
    const random = new Random(1);
    const fixed = await parseLengths("256");
    expect(drawLength(fixed, 9, random)).toBe(256);
    const uniform = await parseLengths("3..5");
    const drawn = Array.from({ length: 200 }, (_, i) => drawLength(uniform, i, random));
    expect([...new Set(drawn)].sort()).toEqual([3, 4, 5]);
    const list = await parseLengths(`@${file("lengths", "10\n\n 20\n30\n")}`);
    expect([0, 1, 2, 3].map((i) => drawLength(list, i, random))).toEqual([10, 20, 30, 10]);
    expect([fixed, uniform, list].map(longest)).toEqual([256, 5, 30]);
  });

  it.each(["", "0", "-1", "1.5", "x", "5..3", "1..2..3", "1e3", "1..", "1000001"])("'%s' are none", async (text) => {
    await expect(parseLengths(text)).rejects.toThrow(RangeError);
  });

  it("of a file are refused with their line", async () => {
    await expect(parseLengths(`@${file("bad", "10\nx\n")}`)).rejects.toThrow(/bad:2: 'x'/);
    await expect(parseLengths(`@${file("empty", "\n")}`)).rejects.toThrow("no numbers");
  });
});

describe("plans", () => {
  const load: Load = {
    requests: 4000,
    concurrency: 4,
    rate: 20,
    promptTokens: { kind: "uniform", from: 10, to: 30 },
    outputTokens: { kind: "fixed", value: 16 },
    prefixShare: 0,
    cancelShare: 0.25,
    seed: 7,
  };

  it("are the seed's alone", () => {
    expect(planLoad(load)).toEqual(planLoad(load));
    expect(planLoad(load)).not.toEqual(planLoad({ ...load, seed: 8 }));
  });

  it("change in nothing but what is changed", () => {
    const lengths = (plan: ReturnType<typeof planLoad>) => plan.map(({ promptTokens }) => promptTokens);
    expect(lengths(planLoad({ ...load, cancelShare: 0, rate: Infinity }))).toEqual(lengths(planLoad(load)));
    const cancelled = (share: number) =>
      planLoad({ ...load, cancelShare: share }).flatMap(({ index, cancelAfter }) =>
        cancelAfter === undefined ? [] : index,
      );
    expect(cancelled(0)).toEqual([]);
    const some = cancelled(0.25);
    expect(cancelled(0.5)).toEqual(expect.arrayContaining(some));
    expect(cancelled(1)).toHaveLength(load.requests);
  });

  it("cancel the share that was asked for, anywhere in the answer", () => {
    const places = planLoad(load).flatMap(({ cancelAfter }) => cancelAfter ?? []);
    expect(places.length / load.requests).toBeCloseTo(0.25, 1);
    expect([...new Set(places)].sort((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, i) => i));
  });
});

describe("prompts", () => {
  it("share what they should, and nothing after it", () => {
    const [a, b] = [promptText(100, 40, 1, 0).split(" "), promptText(100, 40, 1, 1).split(" ")];
    expect(a).toHaveLength(100);
    expect(a.slice(0, 40)).toEqual(b.slice(0, 40));
    const same = a.slice(40).filter((word, i) => word === b[40 + i]).length;
    expect(same).toBeLessThan(10);
  });

  it("come to the tokens that were measured", () => {
    const rate = tokenRate(12, 108, 64);
    expect(rate).toEqual({ overhead: 10.5, perWord: 1.5 });
    expect(wordsFor(310, rate)).toBe(200);
    expect(wordsFor(5, rate)).toBe(1);
  });
});

describe("limits of good answers", () => {
  it("hold together", () => {
    const slo = parseSlo("ttft:500,tpot:50");
    const latency = { ttft: 400, tpot: 40, e2el: 9000, itl: [], icl: [] };
    expect(isGood(latency, slo)).toBe(true);
    expect(isGood({ ...latency, ttft: 501 }, slo)).toBe(false);
    expect(isGood({ ...latency, tpot: 50.1 }, slo)).toBe(false);
    expect(isGood({ ...latency, tpot: undefined }, slo)).toBe(true);
    expect(isGood(latency, parseSlo("e2el:8999"))).toBe(false);
  });

  it.each(["ttft", "ttft:", "ttft:x", "ttft:-1", "ttft:1:2", "itl:5"])("'%s' is none", (text) => {
    expect(() => parseSlo(text)).toThrow(RangeError);
  });
});
