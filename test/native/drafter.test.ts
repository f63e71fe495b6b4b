import { describe, expect, it } from "vitest";
import { loadTestAddon, randomSource } from "../support/test-addon.js";

const addon = loadTestAddon();
const tokens = (...list: number[]) => Int32Array.from(list);

describe("Drafter", () => {
  it("guesses what followed the last three tokens before", () => {
    const drafter = addon.drafter(16);
    expect(drafter.draft(tokens(1, 2, 3, 4, 5, 6, 7))).toEqual([]);
    expect(drafter.draft(tokens(1, 2, 3, 4, 5, 6, 7, 1, 2, 3))).toEqual([4, 5, 6, 7]);
  });

  it("prefers a longer match to a later one", () => {
    const history = [1, 2, 3, 4, 5, 6, 77, 0, 4, 5, 6, 88, 0, 1, 2, 3, 4, 5, 6];
    expect(addon.drafter(16).draft(tokens(...history))[0]).toBe(77);
    expect(addon.drafter(16).draft(tokens(...history.slice(6)))[0]).toBe(88);
  });

  it("guesses no further than it remembers, and no more than asked for", () => {
    expect(addon.drafter(16).draft(tokens(9, 9, 9, 9))).toEqual([9]);
    expect(addon.drafter(2).draft(tokens(1, 2, 3, 4, 5, 6, 7, 1, 2, 3))).toEqual([4, 5]);
  });

  it("guesses more after a right guess, and less after a wrong one", () => {
    const drafter = addon.drafter(16);
    const line = Array.from({ length: 40 }, (_, i) => i);
    const text = [...line, ...line];
    expect(drafter.draft(tokens(...text.slice(0, 43)))).toHaveLength(4);
    drafter.confirm(4, 4);
    expect(drafter.draft(tokens(...text.slice(0, 48)))).toHaveLength(8);
    drafter.confirm(8, 1);
    expect(drafter.draft(tokens(...text.slice(0, 50)))).toHaveLength(1);
  });

  it("finds the same whether it saw the text at once or in parts", () => {
    const random = randomSource(11);
    for (let round = 0; round < 200; round++) {
      const text = Array.from({ length: 60 }, () => Math.floor(random() * 3));
      const grown = addon.drafter(8);
      for (let end = 1; end < text.length; end += 1 + Math.floor(random() * 4))
        grown.draft(tokens(...text.slice(0, end)));
      expect(grown.draft(tokens(...text))).toEqual(addon.drafter(8).draft(tokens(...text)));
    }
  });
});

describe("Workers", () => {
  it("does each piece of work once a round, with helpers or without", () => {
    for (const [helpers, count, rounds] of [
      [0, 5, 10],
      [1, 1, 100],
      [1, 2, 2000],
      [3, 17, 2000],
      [2, 0, 100],
    ] as const) {
      expect(addon.workers(helpers, count, rounds)).toEqual(Array(count).fill(rounds));
    }
  });
});
