import { TooManyStatesError } from "./automaton.js";
import type { Emitter } from "./emit.js";
import type { Dfa, DfaState } from "./explore.js";
import { alt, type Expr, never, repeat, rule, seq } from "./gbnf.js";

/**
 * An automaton whose texts have `min` to `max` code points. Each state is taken together with the number of code points
 * before it; a state that only ever leads to itself needs no states for counting, it becomes a counted repetition.
 */
export function emitBounded(emitter: Emitter, dfa: Dfa, min: number, max: number, limit: number, end: Expr): Expr {
  if (dfa.states.length === 0) return never;
  const { json, rules } = emitter;
  const names = new Map<string, string>();
  const queue: [state: number, count: number][] = [];
  // Beyond the minimum, and without a maximum, how many there were no longer matters.
  const cap = max === Number.POSITIVE_INFINITY ? min : max;

  const refer = (state: number, count: number): Expr => {
    if (count > max) return never;
    const found = dfa.states[state];
    if (found === undefined) return never;
    const loop = pureLoop(found, state);
    if (loop !== undefined) return seq(repeat(json.charIn(loop.ranges), Math.max(0, min - count), max - count), end);
    const key = `${state} ${count}`;
    let name = names.get(key);
    if (name === undefined) {
      if (names.size >= limit) throw new TooManyStatesError("too many states");
      name = rules.fresh("str");
      names.set(key, name);
      queue.push([state, count]);
    }
    return rule(name);
  };

  const start = refer(0, 0);
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
    const [id, count] = item;
    const state = dfa.states[id];
    const name = names.get(`${id} ${count}`);
    if (state === undefined || name === undefined) continue;
    const ways = state.edges.map(({ ranges, target }) =>
      seq(json.charIn(ranges), refer(target, max === Number.POSITIVE_INFINITY ? Math.min(count + 1, cap) : count + 1)),
    );
    if (state.label !== undefined && count >= min) ways.push(end);
    rules.set(name, alt(...ways));
  }
  return start;
}

/** The one edge of an accepting state that leads nowhere but back to it. */
function pureLoop(state: DfaState, id: number): DfaState["edges"][number] | undefined {
  const [only, more] = state.edges;
  return state.label !== undefined && more === undefined && only?.target === id ? only : undefined;
}
