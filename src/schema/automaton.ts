import type { Range } from "./gbnf.js";

/** Code points that a decoded string may hold: all but surrogates. */
export const maxCodePoint = 0x10ffff;

/**
 * A deterministic automaton over code points, worked out as it is walked. States are numbers; `dead` accepts nothing
 * ever again. Inside one span between two neighbouring `bounds`, all code points behave alike.
 */
export interface Automaton {
  readonly start: number;
  /** The first code point of each span, ascending; 0 may be left out. */
  readonly bounds: readonly number[];
  step(state: number, codePoint: number): number;
  accepts(state: number): boolean;
}

export const dead = -1;

/** Thrown when an automaton grows beyond its limit; callers turn it into a SchemaError or take another way. */
export class TooManyStatesError extends Error {}

export function matches(automaton: Automaton, value: string): boolean {
  let state = automaton.start;
  for (const char of value) {
    state = automaton.step(state, char.codePointAt(0) ?? 0);
    if (state === dead) return false;
  }
  return automaton.accepts(state);
}

/** Accepts exactly what `inner` does not. */
export function complement(inner: Automaton): Automaton {
  const lost = Number.MAX_SAFE_INTEGER;
  return {
    start: inner.start,
    bounds: inner.bounds,
    step(state, codePoint) {
      if (state === lost) return lost;
      const next = inner.step(state, codePoint);
      return next === dead ? lost : next;
    },
    accepts: (state) => state === lost || !inner.accepts(state),
  };
}

/** Accepts exactly the given strings: a trie. */
export function literals(values: Iterable<string>): Automaton {
  const children: Map<number, number>[] = [new Map()];
  const final = new Set<number>();
  const used = new Set<number>();
  for (const value of values) {
    let state = 0;
    for (const char of value) {
      const code = char.codePointAt(0) ?? 0;
      used.add(code);
      let next = children[state]?.get(code);
      if (next === undefined) {
        next = children.push(new Map()) - 1;
        children[state]?.set(code, next);
      }
      state = next;
    }
    final.add(state);
  }
  return {
    start: 0,
    bounds: boundsOf([...used].map((code) => [code, code])),
    step: (state, codePoint) => children[state]?.get(codePoint) ?? dead,
    accepts: (state) => final.has(state),
  };
}

/** Accepts strings of `min` to `max` code points. */
export function lengths(min: number, max: number): Automaton {
  const top = max === Number.POSITIVE_INFINITY ? min : max;
  return {
    start: 0,
    bounds: [],
    step: (state) => (state < top ? state + 1 : max === Number.POSITIVE_INFINITY ? top : dead),
    accepts: (state) => state >= min && state <= max,
  };
}

/** Accepts what any of `parts` accepts. */
export function union(parts: readonly Automaton[]): Automaton {
  return sideBySide(parts, false);
}

/** Accepts what all of `parts` accept. */
export function product(parts: readonly Automaton[]): Automaton {
  return sideBySide(parts, true);
}

function sideBySide(parts: readonly Automaton[], all: boolean): Automaton {
  const first = parts.map((part) => part.start);
  const table: number[][] = [first];
  const ids = new Map([[first.join(), 0]]);
  const accepted = (inner: number, i: number): boolean => inner !== dead && (parts[i]?.accepts(inner) ?? false);
  return {
    start: 0,
    bounds: parts.flatMap((part) => part.bounds),
    step(state, codePoint) {
      const next = (table[state] ?? []).map((inner, i) =>
        inner === dead ? dead : (parts[i]?.step(inner, codePoint) ?? dead),
      );
      if (all ? next.includes(dead) : next.every((inner) => inner === dead)) return dead;
      const key = next.join();
      let id = ids.get(key);
      if (id === undefined) {
        id = table.push(next) - 1;
        ids.set(key, id);
      }
      return id;
    },
    accepts: (state) => (all ? (table[state] ?? []).every(accepted) : (table[state] ?? []).some(accepted)),
  };
}

export function boundsOf(ranges: readonly Range[]): number[] {
  const out = new Set<number>();
  for (const [from, to] of ranges) {
    out.add(from);
    out.add(to + 1);
  }
  return [...out].sort((a, b) => a - b);
}
