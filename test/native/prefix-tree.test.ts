import { describe, expect, it } from "vitest";
import { loadTestAddon, randomSource } from "../support/test-addon.js";

const addon = loadTestAddon();
const range = (from: number, to: number) => Int32Array.from({ length: to - from }, (_, i) => from + i);

describe("PrefixTree", () => {
  it("finds the longest prefix that a sequence of the same key holds", () => {
    const tree = addon.prefixTree();
    tree.add(1, "a");
    tree.append(1, range(0, 100));
    expect(tree.find("a", range(0, 200))).toEqual({ length: 100, source: 1 });
    expect(tree.find("a", range(0, 30))).toEqual({ length: 30, source: 1 });
    expect(tree.find("a", range(1, 30))).toEqual({ length: 0, source: -1 });
    expect(tree.find("b", range(0, 200))).toEqual({ length: 0, source: -1 });
    expect(tree.find("a", new Int32Array())).toEqual({ length: 0, source: -1 });
  });

  it("counts shared cells once, and frees them with the last sequence", () => {
    const tree = addon.prefixTree();
    tree.add(1, "");
    tree.append(1, range(0, 100));
    tree.addShared(2, 1, 60);
    tree.append(2, range(500, 540));
    expect(tree.counts()).toEqual({ cells: 140, active: 140 });
    expect([tree.length(1), tree.length(2)]).toEqual([100, 100]);
    expect([tree.ownCells(1), tree.ownCells(2)]).toEqual([40, 40]);
    tree.remove(1);
    expect(tree.counts()).toEqual({ cells: 100, active: 100 });
    expect(tree.ownCells(2)).toBe(100);
    expect(tree.find("", range(0, 100))).toEqual({ length: 60, source: 2 });
    tree.remove(2);
    expect(tree.counts()).toEqual({ cells: 0, active: 0 });
    expect(tree.find("", range(0, 100))).toEqual({ length: 0, source: -1 });
  });

  it("tells cells of active sequences from those that are only kept", () => {
    const tree = addon.prefixTree();
    tree.add(1, "");
    tree.append(1, range(0, 100));
    tree.keep(1);
    expect(tree.counts()).toEqual({ cells: 100, active: 0 });
    expect(tree.idleCells(1, 40)).toBe(40);
    tree.addShared(2, 1, 40);
    expect(tree.counts()).toEqual({ cells: 100, active: 40 });
    expect(tree.idleCells(1, 70)).toBe(30);
    tree.keep(2);
    expect(tree.counts()).toEqual({ cells: 100, active: 0 });
    tree.remove(1);
    expect(tree.counts()).toEqual({ cells: 40, active: 0 });
  });

  it("keeps equal runs that were computed twice apart", () => {
    const tree = addon.prefixTree();
    for (const sequence of [1, 2]) {
      tree.add(sequence, "");
      tree.append(sequence, range(0, 50));
    }
    tree.append(2, range(50, 80));
    expect(tree.counts().cells).toBe(130);
    expect(tree.find("", range(0, 80))).toEqual({ length: 80, source: 2 });
    tree.remove(2);
    expect(tree.find("", range(0, 80))).toEqual({ length: 50, source: 1 });
  });

  it("agrees with a plain model on random histories", () => {
    const random = randomSource(23);
    const upTo = (n: number) => Math.floor(random() * n);
    for (let history = 0; history < 60; history++) {
      const tree = addon.prefixTree();
      // A cell is an object; a sequence is the list of its cells.
      const sequences = new Map<number, { key: string; cells: { token: number }[]; active: boolean }>();
      let next = 0;
      for (let step = 0; step < 150; step++) {
        const ids = [...sequences.keys()];
        const id = ids[upTo(ids.length)];
        const some = id === undefined ? undefined : sequences.get(id);
        const choice = random();
        if (id === undefined || some === undefined || choice < 0.2) {
          const key = random() < 0.5 ? "a" : "b";
          tree.add(next, key);
          sequences.set(next++, { key, cells: [], active: true });
        } else if (choice < 0.45) {
          const length = upTo(some.cells.length + 1);
          tree.addShared(next, id, length);
          sequences.set(next++, { key: some.key, cells: some.cells.slice(0, length), active: true });
        } else if (choice < 0.75) {
          const tokens = Int32Array.from({ length: upTo(6) }, () => upTo(3));
          if (!some.active) continue;
          tree.append(id, tokens);
          some.cells.push(...Array.from(tokens, (token) => ({ token })));
        } else if (choice < 0.85) {
          tree.keep(id);
          some.active = false;
        } else {
          tree.remove(id);
          sequences.delete(id);
        }

        const all = [...sequences.values()];
        const distinct = (list: typeof all) => new Set(list.flatMap(({ cells }) => cells)).size;
        expect(tree.counts()).toEqual({ cells: distinct(all), active: distinct(all.filter(({ active }) => active)) });
        for (const [sequence, { cells }] of sequences) {
          expect(tree.length(sequence)).toBe(cells.length);
          const others = new Set(all.filter((other) => other.cells !== cells).flatMap((other) => other.cells));
          expect(tree.ownCells(sequence)).toBe(cells.filter((cell) => !others.has(cell)).length);
        }
        const key = random() < 0.5 ? "a" : "b";
        const prompt = Int32Array.from({ length: upTo(12) }, () => upTo(3));
        const common = (cells: { token: number }[]) => {
          const end = cells.findIndex(({ token }, i) => token !== prompt[i]);
          return Math.min(end < 0 ? cells.length : end, prompt.length);
        };
        const best = Math.max(0, ...all.filter((sequence) => sequence.key === key).map(({ cells }) => common(cells)));
        const match = tree.find(key, prompt);
        expect(match.length).toBe(best);
        if (best > 0) expect(common(sequences.get(match.source)?.cells ?? [])).toBe(best);
      }
    }
  });
});
