import { type Automaton, complement, lengths, literals, product, TooManyStatesError, union } from "./automaton.js";
import type { Emitter } from "./emit.js";
import { emitBounded } from "./emit-bounded.js";
import { emitDfa } from "./emit-dfa.js";
import { type SchemaError, unsupported } from "./error.js";
import { type Dfa, explore } from "./explore.js";
import { alt, type Expr, repeat, seq, text } from "./gbnf.js";
import type { Pattern } from "./pattern-parse.js";
import type { Alternative, Source } from "./types.js";

export const maxPatternStates = 2000;
const quote = text('"');

/** A JSON string under length, pattern and format. */
export function emitString(emitter: Emitter, a: Alternative): Expr {
  const { json, rules } = emitter;
  if (a.strings.length === 0) {
    if (a.minLength === 0 && a.maxLength === Number.POSITIVE_INFINITY) return json.string();
    return seq(quote, repeat(json.char(), a.minLength, a.maxLength), quote);
  }
  const bounded = a.minLength > 0 || a.maxLength !== Number.POSITIVE_INFINITY;
  try {
    const dfa = single(a.strings) ?? intersection(a.strings);
    if (bounded) {
      return seq(quote, emitBounded(emitter, dfa, a.minLength, a.maxLength, maxPatternStates, quote));
    }
    return seq(
      quote,
      emitDfa(
        rules,
        "str",
        dfa,
        (ranges) => json.charIn(ranges),
        () => quote,
      ),
    );
  } catch (error) {
    if (!(error instanceof TooManyStatesError)) throw error;
    const [only] = a.strings;
    const direct = a.strings.length === 1 && !bounded && only !== undefined ? treeOf(only) : undefined;
    if (direct !== undefined) return seq(quote, emitAnchored(emitter, direct, a.sources.string), quote);
    throw tooComplex(a.sources.string, "the pattern needs too many states.");
  }
}

/** Walked automata, as long as these live: formats are asked for again and again. */
const walked = new WeakMap<Automaton, Dfa>();

function single(parts: readonly Automaton[]): Dfa | undefined {
  const [part, more] = parts;
  if (part === undefined || more !== undefined) return undefined;
  let dfa = walked.get(part);
  if (dfa === undefined) {
    dfa = intersection(parts);
    walked.set(part, dfa);
  }
  return dfa;
}

function intersection(parts: readonly Automaton[]): Dfa {
  return explore(parts, {
    limit: maxPatternStates,
    allAlive: true,
    label: (states) => (parts.every((part, i) => part.accepts(states[i] ?? -1)) ? "" : undefined),
  });
}

function treeOf(automaton: Automaton): Pattern | undefined {
  return "tree" in automaton ? (automaton as Automaton & { tree: Pattern }).tree : undefined;
}

/** Patterns with large counts, written as they stand: anchored at both ends, and with no anchor elsewhere. */
function emitAnchored(emitter: Emitter, tree: Pattern, source: Source | undefined): Expr {
  const items = tree.kind === "seq" ? tree.items : [tree];
  const anchored = items[0]?.kind === "start";
  const closed = items.at(-1)?.kind === "end" && items.length > 1;
  const any = repeat(emitter.json.char(), 0, Number.POSITIVE_INFINITY);
  const inner = items.slice(anchored ? 1 : 0, closed ? -1 : undefined).map((item) => emitTree(emitter, item, source));
  return seq(...(anchored ? [] : [any]), ...inner, ...(closed ? [] : [any]));
}

function emitTree(emitter: Emitter, tree: Pattern, source: Source | undefined): Expr {
  switch (tree.kind) {
    case "chars":
      return emitter.json.charIn(tree.ranges);
    case "seq":
      return seq(...tree.items.map((item) => emitTree(emitter, item, source)));
    case "alt":
      return alt(...tree.items.map((item) => emitTree(emitter, item, source)));
    case "repeat":
      return repeat(emitTree(emitter, tree.item, source), tree.min, tree.max);
    default:
      throw tooComplex(source, "the pattern needs too many states, and has an anchor inside.");
  }
}

export function tooComplex(source: Source | undefined, message: string): SchemaError {
  return unsupported({ pointer: source?.pointer ?? "" }, source?.keyword ?? "", message);
}

/** The strings that some alternatives accept, as one automaton over decoded strings. */
export function stringAutomaton(alternatives: readonly Alternative[]): Automaton {
  const parts = alternatives.map((a) => {
    if (a.values !== undefined) return literals(a.values.filter((value) => typeof value === "string"));
    const bounded = a.minLength > 0 || a.maxLength !== Number.POSITIVE_INFINITY;
    const all = bounded ? [...a.strings, lengths(a.minLength, a.maxLength)] : a.strings;
    return all.length === 0 ? complement(literals([])) : product(all);
  });
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : union(parts);
}
