import { type Automaton, boundsOf, dead, TooManyStatesError } from "./automaton.js";
import { contains } from "./char-sets.js";
import type { Range } from "./gbnf.js";
import { type Pattern, parsePattern } from "./pattern-parse.js";

/** A pattern's automaton; `tree` is kept for patterns whose counts are too large for states. */
export interface PatternAutomaton extends Automaton {
  readonly tree: Pattern;
}

interface State {
  chars: { ranges: readonly Range[]; to: number } | undefined;
  /** Free moves; a guard lets one pass only at the string's start or end. */
  free: { to: number; guard: "start" | "end" | undefined }[];
}

const maxStates = 20_000;
const workBudget = 10_000_000;

/** A pattern as an automaton over whole strings: unanchored ends match anything. Throws PatternError. */
export function patternAutomaton(source: string): PatternAutomaton {
  return new Lazy(parsePattern(source));
}

/** Determinises Thompson's construction as it is walked. */
class Lazy implements PatternAutomaton {
  readonly tree: Pattern;
  private states: State[] | undefined;
  private ranges: (readonly Range[])[] = [];
  private sets: number[][] = [];
  private ids = new Map<string, number>();
  private final: boolean[] = [];
  private accept = 0;
  private work = 0;
  private cache: Map<number, number>[] = [];
  private boundsCache: number[] | undefined;
  readonly start = 0;

  constructor(tree: Pattern) {
    this.tree = tree;
  }

  get bounds(): readonly number[] {
    this.build();
    this.boundsCache ??= boundsOf(this.ranges.flat());
    return this.boundsCache;
  }

  step(state: number, codePoint: number): number {
    this.build();
    const span = this.spanOf(codePoint);
    const known = this.cache[state]?.get(span);
    if (known !== undefined) return known;
    const next: number[] = [];
    for (const id of this.sets[state] ?? []) {
      const edge = this.states?.[id]?.chars;
      if (edge !== undefined && contains(edge.ranges, codePoint)) next.push(edge.to);
    }
    const result = next.length === 0 ? dead : this.intern(this.closure(next, false, false));
    this.cache[state]?.set(span, result);
    return result;
  }

  /** Which span a code point is in: what is remembered by span stays bounded whatever the text. */
  private spanOf(codePoint: number): number {
    const { bounds } = this;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((bounds[middle] ?? 0) <= codePoint) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  accepts(state: number): boolean {
    this.build();
    return this.final[state] ?? false;
  }

  /** Built on first use: a pattern that is only carried along costs nothing. */
  private build(): void {
    if (this.states !== undefined) return;
    this.states = [];
    const any: readonly Range[] = [[0, 0x10ffff]];
    const loop = this.add();
    this.link(loop, any, loop);
    const begin = this.add();
    this.free(loop, begin);
    const end = this.place(this.tree, begin);
    this.accept = this.add();
    this.free(end, this.accept);
    this.link(this.accept, any, this.accept);
    this.intern(this.closure([loop], true, false), true);
  }

  private intern(set: number[], first = false): number {
    // Once the whole pattern has been seen, nothing that follows matters.
    const ids = set.includes(this.accept) ? [this.accept] : set;
    const key = ids.join();
    let id = this.ids.get(key);
    if (id === undefined || first) {
      id = this.sets.push(ids) - 1;
      this.cache.push(new Map());
      this.final.push(this.closure(ids, first, true).includes(this.accept));
      // The start state alone may still pass "^", so no later state may be mistaken for it.
      if (!first) this.ids.set(key, id);
    }
    return id;
  }

  private closure(from: readonly number[], atStart: boolean, atEnd: boolean): number[] {
    const seen = new Set(from);
    const queue = [...seen];
    for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
      for (const { to, guard } of this.states?.[id]?.free ?? []) {
        if (++this.work > workBudget) throw new TooManyStatesError("too much work");
        if (seen.has(to) || (guard === "start" && !atStart) || (guard === "end" && !atEnd)) continue;
        seen.add(to);
        queue.push(to);
      }
    }
    return [...seen].sort((a, b) => a - b);
  }

  private add(): number {
    const states = this.states ?? [];
    if (states.length >= maxStates) throw new TooManyStatesError("too many states");
    return states.push({ chars: undefined, free: [] }) - 1;
  }

  private link(from: number, ranges: readonly Range[], to: number): void {
    const state = this.states?.[from];
    if (state !== undefined) state.chars = { ranges, to };
    this.ranges.push(ranges);
  }

  private free(from: number, to: number, guard?: "start" | "end"): void {
    this.states?.[from]?.free.push({ to, guard });
  }

  /** Lays the tree's states after `from`; returns where it ends. Recursion is bounded by the parser's depth limit. */
  private place(tree: Pattern, from: number): number {
    switch (tree.kind) {
      case "chars": {
        const begin = this.add();
        this.free(from, begin);
        const to = this.add();
        this.link(begin, tree.ranges, to);
        return to;
      }
      case "seq":
        return tree.items.reduce((at, item) => this.place(item, at), from);
      case "alt": {
        const to = this.add();
        for (const item of tree.items) {
          const begin = this.add();
          this.free(from, begin);
          this.free(this.place(item, begin), to);
        }
        return to;
      }
      case "repeat":
        return this.placeRepeat(tree.item, tree.min, tree.max, from);
      default: {
        const to = this.add();
        this.free(from, to, tree.kind);
        return to;
      }
    }
  }

  private placeRepeat(item: Pattern, min: number, max: number, from: number): number {
    let at = from;
    for (let i = 0; i < min; i++) {
      const before = at;
      at = this.place(item, this.joint(at));
      if (at === before) return at;
    }
    if (max === Number.POSITIVE_INFINITY) {
      const loop = this.joint(at);
      this.free(this.place(item, loop), loop);
      return this.joint(loop);
    }
    const out = this.add();
    this.free(at, out);
    for (let i = min; i < max; i++) {
      at = this.place(item, this.joint(at));
      this.free(at, out);
    }
    return out;
  }

  private joint(from: number): number {
    const to = this.add();
    this.free(from, to);
    return to;
  }
}
