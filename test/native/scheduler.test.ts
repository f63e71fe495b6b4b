import { describe, expect, it } from "vitest";
import { loadTestAddon, randomSource, type SequenceView } from "../support/test-addon.js";

const addon = loadTestAddon();
const limits = (
  over: Partial<{ batchSize: number; promptBudget: number; aloneBudget: number; freeCells: number }> = {},
) => ({
  batchSize: 2048,
  promptBudget: 64,
  aloneBudget: 2048,
  freeCells: 100_000,
  ...over,
});
const view = (over: Partial<SequenceView>): SequenceView => ({
  pending: 1,
  cells: 0,
  decoding: false,
  priority: 0,
  arrival: 0,
  paused: false,
  drafts: 0,
  ...over,
});
const decoding = (arrival: number, cells = 100): SequenceView => view({ cells, decoding: true, arrival });
const prompt = (arrival: number, pending: number, cells = 0): SequenceView => view({ pending, cells, arrival });

describe("planStep", () => {
  it("has nothing to do without sequences", () => {
    expect(addon.planStep([], limits())).toEqual({ shares: [], preempted: [] });
  });

  it("gives every decoding sequence its token first, whatever the order", () => {
    const plan = addon.planStep([prompt(1, 500), decoding(2), decoding(3)], limits());
    expect(plan.shares.slice(0, 2)).toEqual([
      [1, 1],
      [2, 1],
    ]);
    expect(plan.shares[2]).toEqual([0, 64]);
  });

  it("lets a prompt that is alone fill the batch", () => {
    expect(addon.planStep([prompt(1, 5000)], limits()).shares).toEqual([[0, 2048]]);
    expect(addon.planStep([prompt(1, 5000)], limits({ aloneBudget: 512 })).shares).toEqual([[0, 512]]);
  });

  it("shares the prompt budget evenly; what a short prompt leaves goes to the others", () => {
    const plan = addon.planStep([prompt(1, 500), prompt(2, 10), prompt(3, 500)], limits({ promptBudget: 100 }));
    expect(new Map(plan.shares)).toEqual(
      new Map([
        [1, 10],
        [0, 45],
        [2, 45],
      ]),
    );
  });

  it("never exceeds the batch, even when more sequences decode than fit", () => {
    const plan = addon.planStep([decoding(1), decoding(2), decoding(3)], limits({ batchSize: 2 }));
    expect(plan.shares.length).toBe(2);
    expect(plan.preempted).toEqual([]);
  });

  it("takes back the youngest when the cells do not suffice, and never the oldest", () => {
    const plan = addon.planStep([decoding(7, 50), decoding(3, 50), decoding(9, 50)], limits({ freeCells: 0 }));
    expect(plan.preempted).toEqual([2]);
    expect(new Set(plan.shares.map(([index]) => index))).toEqual(new Set([0, 1]));
  });

  it("counts what the preempted free", () => {
    // Three need a cell each; the youngest frees none, so the next one goes too.
    const plan = addon.planStep(
      [decoding(1, 40), decoding(2, 40), prompt(3, 9, 0), decoding(4, 0)],
      limits({ freeCells: 1 }),
    );
    expect(plan.preempted).toEqual([3, 2, 1]);
    expect(plan.shares).toEqual([[0, 1]]);
  });

  it("says that the last one cannot go on by an empty plan", () => {
    expect(addon.planStep([decoding(1)], limits({ freeCells: 0 }))).toEqual({ shares: [], preempted: [] });
    expect(addon.planStep([prompt(1, 5)], limits({ freeCells: 0 }))).toEqual({ shares: [], preempted: [] });
  });

  it("passes over those that are paused, and takes their cells first", () => {
    const paused = { ...decoding(1, 50), paused: true };
    expect(addon.planStep([paused, decoding(2)], limits())).toEqual({ shares: [[1, 1]], preempted: [] });
    const plan = addon.planStep([paused, decoding(2, 50), decoding(3, 50)], limits({ freeCells: 1 }));
    expect(plan).toEqual({
      shares: [
        [1, 1],
        [2, 1],
      ],
      preempted: [0],
    });
    expect(addon.planStep([paused], limits())).toEqual({ shares: [], preempted: [] });
    // Alone among paused ones, a prompt may fill the batch.
    expect(addon.planStep([paused, prompt(2, 5000)], limits()).shares).toEqual([[1, 2048]]);
  });

  it("serves a smaller priority first, and takes back a larger one first", () => {
    const late = { ...prompt(9, 500), priority: -1 };
    const plan = addon.planStep([prompt(1, 500), late, prompt(2, 500)], limits({ promptBudget: 600 }));
    expect(new Map(plan.shares)).toEqual(
      new Map([
        [1, 500],
        [0, 50],
        [2, 50],
      ]),
    );
    const important = { ...decoding(9, 50), priority: -1 };
    expect(addon.planStep([decoding(1, 50), important], limits({ freeCells: 0 }))).toEqual({
      shares: [[1, 1]],
      preempted: [0],
    });
  });

  it("verifies drafts where there is room, an equal number for each, and not at the prompts' cost", () => {
    const guessing = (arrival: number, drafts: number) => ({ ...decoding(arrival), drafts });
    const sharesOf = (views: SequenceView[], over: Parameters<typeof limits>[0]) =>
      new Map(addon.planStep(views, limits(over)).shares);
    expect(sharesOf([guessing(1, 3), guessing(2, 9)], {})).toEqual(
      new Map([
        [0, 4],
        [1, 10],
      ]),
    );
    expect(sharesOf([guessing(1, 9), guessing(2, 9)], { freeCells: 6 })).toEqual(
      new Map([
        [0, 3],
        [1, 3],
      ]),
    );
    // 64 for prompts, less 20 drafts; never less than the floor.
    expect(sharesOf([guessing(1, 20), prompt(2, 500)], {}).get(1)).toBe(44);
    expect(sharesOf([guessing(1, 60), prompt(2, 500)], {}).get(1)).toBe(16);
  });

  it("keeps its promises on random inputs", () => {
    const random = randomSource(3);
    const upTo = (n: number) => Math.floor(random() * n);
    for (let round = 0; round < 5000; round++) {
      const sequences = Array.from({ length: 1 + upTo(12) }, (_, i): SequenceView => {
        const decodes = random() < 0.5;
        return {
          pending: decodes ? 1 : 1 + upTo(300),
          cells: upTo(50),
          decoding: decodes,
          priority: upTo(3) - 1,
          arrival: (i * 7919) % 101,
          paused: random() < 0.2,
          drafts: decodes ? upTo(6) : 0,
        };
      });
      const bounds = {
        batchSize: 12 + upTo(500),
        promptBudget: 16 + upTo(200),
        aloneBudget: 16 + upTo(400),
        freeCells: upTo(60),
      };
      const plan = addon.planStep(sequences, bounds);
      const at = (index: number): SequenceView => {
        const view = sequences[index];
        if (!view) throw new Error(`the plan names sequence ${index}`);
        return view;
      };
      const tokens = plan.shares.reduce((sum, [, n]) => sum + n, 0);
      const freed = plan.preempted.reduce((sum, index) => sum + at(index).cells, 0);
      const what = JSON.stringify({ sequences, bounds, plan });
      expect(tokens <= bounds.batchSize, what).toBe(true);
      expect(tokens <= bounds.freeCells + freed, what).toBe(true);
      const named = [...plan.shares.map(([index]) => index), ...plan.preempted];
      expect(new Set(named).size, what).toBe(named.length);
      for (const [index, n] of plan.shares) {
        const { pending, drafts, paused } = at(index);
        expect(n >= 1 && n <= pending + drafts && !paused, what).toBe(true);
      }
      // All that decode and were not taken back are in the step.
      const shared = new Set(plan.shares.map(([index]) => index));
      sequences.forEach((view, index) => {
        if (view.decoding && !view.paused && !plan.preempted.includes(index)) {
          expect(
            shared.has(index) || (sequences.length === plan.preempted.length + 1 && bounds.freeCells + freed === 0),
            what,
          ).toBe(true);
        }
      });
      // The first in the order of service is never taken back, and the preempted come after all that stay.
      const behind = (a: SequenceView, b: SequenceView) =>
        a.paused !== b.paused ? a.paused : a.priority !== b.priority ? a.priority > b.priority : a.arrival >= b.arrival;
      const staying = sequences
        .map((view, index) => ({ view, index }))
        .filter(({ index }) => !plan.preempted.includes(index));
      expect(staying.length >= 1, what).toBe(true);
      for (const index of plan.preempted) {
        for (const { view } of staying) expect(behind(at(index), view), what).toBe(true);
      }
    }
  });
});

describe("PromptBudget", () => {
  /** A machine on which decoding takes `decodeMs` a step, and a prompt token `tokenMs`. */
  function settle(targetMs: number, decodeMs: number, tokenMs: number): { tokens: number; stepMs: number } {
    const budget = addon.promptBudget(targetMs);
    for (let i = 0; i < 20; i++) budget.observe(0, 7, decodeMs);
    let tokens = 0;
    for (let i = 0; i < 200; i++) {
      tokens = budget.tokens(7);
      budget.observe(tokens, 7, decodeMs + tokens * tokenMs);
    }
    return { tokens, stepMs: decodeMs + tokens * tokenMs };
  }

  it("fills a step up to the target, whatever decoding takes of it", () => {
    for (const [decodeMs, tokenMs] of [
      [1, 0.5],
      [20, 0.4],
      [35, 0.1],
      [10, 0.01],
    ] as const) {
      expect(settle(50, decodeMs, tokenMs).stepMs).toBeGreaterThan(45);
      expect(settle(50, decodeMs, tokenMs).stepMs).toBeLessThan(52);
    }
  });

  it("leaves prompts a quarter of the target where decoding uses it up", () => {
    expect(settle(50, 60, 0.2).tokens).toBe(62);
    expect(settle(50, 90, 0.2).tokens).toBe(62);
  });

  it("never goes below the floor, and begins carefully", () => {
    expect(addon.promptBudget(50).tokens(0)).toBe(64);
    expect(settle(50, 60, 10).tokens).toBe(16);
    const budget = addon.promptBudget(50);
    for (let i = 0; i < 50; i++) budget.observe(100, 0, 100); // 1 ms per token
    expect(budget.tokens(0)).toBe(50);
  });

  it("finds back when decoding has become cheaper than it remembers", () => {
    const budget = addon.promptBudget(50);
    for (let i = 0; i < 50; i++) budget.observe(0, 8, 200);
    let ms = 0;
    for (let i = 0; i < 100; i++) {
      const tokens = budget.tokens(2);
      ms = 10 + tokens * 0.5;
      budget.observe(tokens, 2, ms);
    }
    expect(ms).toBeGreaterThan(40);
    expect(ms).toBeLessThan(60);
  });

  it("is not thrown off by one slow step, nor by measurements that say nothing", () => {
    const budget = addon.promptBudget(50);
    for (let i = 0; i < 50; i++) budget.observe(100, 0, 10);
    const before = budget.tokens(0);
    budget.observe(0, 0, 10);
    budget.observe(10, 0, 0);
    expect(budget.tokens(0)).toBe(before);
    budget.observe(100, 0, 20);
    expect(budget.tokens(0)).toBeGreaterThan(before / 2);
  });
});
