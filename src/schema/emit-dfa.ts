import type { Dfa } from "./explore.js";
import { alt, type Expr, never, type Range, type Rules, repeat, rule, seq } from "./gbnf.js";

/**
 * An automaton as right-linear rules: each state that is reached from more than one place gets a rule, others are
 * written where they are reached. `letter` writes one code point out of a set, `finish` what follows acceptance.
 */
export function emitDfa(
  rules: Rules,
  stem: string,
  dfa: Dfa,
  letter: (ranges: readonly Range[]) => Expr,
  finish: (label: string) => Expr,
): Expr {
  if (dfa.states.length === 0) return never;
  const incoming = dfa.states.map(() => 0);
  dfa.states.forEach((state, i) => {
    for (const { target } of state.edges) if (target !== i) incoming[target] = (incoming[target] ?? 0) + 1;
  });
  const names = new Map<number, string>();
  const queue: number[] = [];
  const refer = (state: number): Expr => {
    let name = names.get(state);
    if (name === undefined) {
      name = rules.fresh(stem);
      names.set(state, name);
      queue.push(state);
    }
    return rule(name);
  };

  /** A state's body; a run of states with one way on is written in one line. */
  const body = (first: number): Expr => {
    const line: Expr[] = [];
    for (let at = first; ; ) {
      const state = dfa.states[at];
      if (state === undefined) return never;
      const self = state.edges.find(({ target }) => target === at);
      if (self !== undefined) line.push(repeat(letter(self.ranges), 0, Number.POSITIVE_INFINITY));
      const onward = state.edges.filter(({ target }) => target !== at);
      const [only] = onward;
      if (state.label === undefined && onward.length === 1 && only !== undefined) {
        line.push(letter(only.ranges));
        if (incoming[only.target] === 1 && only.target !== 0) {
          at = only.target;
          continue;
        }
        return seq(...line, refer(only.target));
      }
      const ways = onward.map(({ ranges, target }) => seq(letter(ranges), refer(target)));
      if (state.label !== undefined) ways.push(finish(state.label));
      return seq(...line, alt(...ways));
    }
  };

  const start = refer(0);
  for (let state = queue.shift(); state !== undefined; state = queue.shift()) {
    const name = names.get(state);
    if (name !== undefined) rules.set(name, body(state));
  }
  return start;
}
