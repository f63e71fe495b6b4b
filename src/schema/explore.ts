import { type Automaton, boundsOf, dead, maxCodePoint, TooManyStatesError } from "./automaton.js";
import { contains } from "./char-sets.js";
import type { Range } from "./gbnf.js";

/** A finished automaton. State 0 is the start; every state can still reach an accepting one. */
export interface Dfa {
  states: DfaState[];
}

export interface DfaState {
  /** Where to go on what; ranges of one edge are sorted and apart. */
  edges: { ranges: Range[]; target: number }[];
  /** Set for accepting states: which kind of acceptance. */
  label: string | undefined;
}

export interface ExploreOptions {
  /** States beyond which TooManyStatesError is thrown. */
  limit: number;
  /** The label of a state, from the parts' states; undefined when it is not accepting. */
  label: (states: readonly number[]) => string | undefined;
  /** Whether every part must stay alive (a dead part means nothing will be accepted). */
  allAlive: boolean;
  /** Letters looked at; default all code points but surrogates. */
  alphabet?: readonly Range[];
}

const allCodePoints: readonly Range[] = [
  [0, 0xd7ff],
  [0xe000, maxCodePoint],
];

/** At most this many steps of all parts together: what bounds the time of one schema's automata. */
const stepBudget = 3_000_000;
/** The same for merging states afterwards. */
const foldBudget = 4_000_000;

/** Walks `parts` side by side over all inputs. The result is minimal, and has no states when nothing is accepted. */
export function explore(parts: readonly Automaton[], options: ExploreOptions): Dfa {
  const spans = cut(options.alphabet ?? allCodePoints, parts);
  const start = parts.map((part) => part.start);
  const table: number[][] = [start];
  const ids = new Map([[start.join(), 0]]);
  const edges: number[][] = [];
  let steps = 0;
  for (let id = 0; id < table.length; id++) {
    const from = table[id] ?? [];
    const row: number[] = [];
    for (const span of spans) {
      steps += parts.length;
      if (steps > stepBudget) throw new TooManyStatesError("too much work");
      const next = from.map((state, i) => (state === dead ? dead : (parts[i]?.step(state, span[0]) ?? dead)));
      if (options.allAlive ? next.includes(dead) : false) {
        row.push(dead);
        continue;
      }
      const key = next.join();
      let target = ids.get(key);
      if (target === undefined) {
        target = table.push(next) - 1;
        if (target >= options.limit) throw new TooManyStatesError("too many states");
        ids.set(key, target);
      }
      row.push(target);
    }
    edges.push(row);
  }
  return finish(edges, table.map(options.label), spans);
}

/** A finished automaton as a part for another walk. */
export function asAutomaton(dfa: Dfa): Automaton {
  return {
    start: 0,
    bounds: boundsOf(dfa.states.flatMap(({ edges }) => edges.flatMap(({ ranges }) => ranges))),
    step: (state, codePoint) =>
      dfa.states[state]?.edges.find(({ ranges }) => contains(ranges, codePoint))?.target ?? dead,
    accepts: (state) => dfa.states[state]?.label !== undefined,
  };
}

/** Removes states that lead nowhere and merges states that behave alike (Moore's refinement). */
function finish(rows: number[][], labels: (string | undefined)[], spans: readonly Range[]): Dfa {
  const alive = reachesAcceptance(rows, labels);
  if (!alive[0]) return { states: [] };
  const first = labels.map((label, i) => (!alive[i] ? "dead" : label === undefined ? "inner" : `accepts ${label}`));
  let groups = number(first);
  let folds = 0;
  for (let count = new Set(groups).size; ; ) {
    folds += rows.length * spans.length;
    if (folds > foldBudget) throw new TooManyStatesError("too much work");
    const now = refine(rows, alive, groups);
    const finer = new Set(now).size;
    groups = now;
    if (finer === count) break;
    count = finer;
  }
  return rebuild(rows, labels, spans, alive, groups);
}

/** Splits groups by where their states lead. A row's groups are folded into one number, pair by pair. */
function refine(rows: number[][], alive: boolean[], groups: number[]): number[] {
  const pairs = new Map<number, number>();
  const fold = (left: number, right: number): number => {
    const key = left * 0x200000 + right;
    let id = pairs.get(key);
    if (id === undefined) {
      id = pairs.size + groups.length;
      pairs.set(key, id);
    }
    return id;
  };
  const folded = rows.map((row, i) => {
    if (!alive[i]) return -1;
    let key = groups[i] ?? 0;
    // 0 stands for every way that leads nowhere.
    for (const to of row) key = fold(key, to === dead || !alive[to] ? 0 : 1 + (groups[to] ?? 0));
    return key;
  });
  const ids = new Map<number, number>();
  return folded.map((key) => {
    let id = ids.get(key);
    if (id === undefined) {
      id = ids.size;
      ids.set(key, id);
    }
    return id;
  });
}

function number(keys: readonly string[]): number[] {
  const ids = new Map<string, number>();
  return keys.map((key) => {
    let id = ids.get(key);
    if (id === undefined) {
      id = ids.size;
      ids.set(key, id);
    }
    return id;
  });
}

function rebuild(
  rows: number[][],
  labels: (string | undefined)[],
  spans: readonly Range[],
  alive: boolean[],
  groups: number[],
): Dfa {
  const states: DfaState[] = [];
  const numbers = new Map<number, number>([[groups[0] ?? 0, 0]]);
  const queue = [0];
  for (let at = 0; at < queue.length; at++) {
    const id = queue[at] ?? 0;
    const byTarget = new Map<number, Range[]>();
    (rows[id] ?? []).forEach((to, column) => {
      const span = spans[column];
      if (to === dead || !alive[to] || span === undefined) return;
      const cls = groups[to] ?? 0;
      let target = numbers.get(cls);
      if (target === undefined) {
        target = numbers.size;
        numbers.set(cls, target);
        queue.push(to);
      }
      const list = byTarget.get(target);
      if (list === undefined) byTarget.set(target, [span]);
      else addRange(list, span);
    });
    states.push({ edges: [...byTarget].map(([target, ranges]) => ({ ranges, target })), label: labels[id] });
  }
  return { states };
}

function addRange(list: Range[], span: Range): void {
  const last = list.at(-1);
  if (last !== undefined && last[1] + 1 === span[0]) list[list.length - 1] = [last[0], span[1]];
  else list.push(span);
}

function reachesAcceptance(rows: number[][], labels: (string | undefined)[]): boolean[] {
  const sources: number[][] = rows.map(() => []);
  rows.forEach((row, from) => {
    for (const to of new Set(row)) if (to !== dead) sources[to]?.push(from);
  });
  const alive = labels.map((label) => label !== undefined);
  const queue = alive.flatMap((yes, i) => (yes ? [i] : []));
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    for (const from of sources[id] ?? []) {
      if (alive[from]) continue;
      alive[from] = true;
      queue.push(from);
    }
  }
  return alive;
}

/** The alphabet cut wherever some part may tell neighbours apart. */
function cut(alphabet: readonly Range[], parts: readonly Automaton[]): Range[] {
  const bounds = [...new Set(parts.flatMap((part) => part.bounds))].sort((a, b) => a - b);
  const out: Range[] = [];
  for (const [from, to] of alphabet) {
    let at = from;
    for (const bound of bounds) {
      if (bound <= at) continue;
      if (bound > to) break;
      out.push([at, bound - 1]);
      at = bound;
    }
    out.push([at, to]);
  }
  return out;
}
