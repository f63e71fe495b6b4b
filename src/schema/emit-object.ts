import { type Automaton, complement, dead, literals, TooManyStatesError } from "./automaton.js";
import type { Emitter } from "./emit.js";
import { emitDfa } from "./emit-dfa.js";
import { maxPatternStates, stringAutomaton, tooComplex } from "./emit-string.js";
import { explore } from "./explore.js";
import { alt, type Expr, empty, never, optional, repeat, rule, seq, text } from "./gbnf.js";
import { matchesNode, propertyNode } from "./match.js";
import { trieComplement } from "./trie.js";
import { type Alternative, kinds, type Node } from "./types.js";

const endless = Number.POSITIVE_INFINITY;
const maxCells = 20_000;

interface Member {
  expr: Expr;
  required: boolean;
}

/** An object: named properties in the schema's order, then any others. */
export function emitObject(emitter: Emitter, a: Alternative): Expr {
  const { json, context } = emitter;
  if (a.objects.length === 0 && a.required.length + a.forbidden.length + a.names.length === 0) {
    if (a.minProperties === 0 && a.maxProperties === endless) return json.object();
  }
  const required = new Set(a.required);
  const names = new Set([...a.objects.flatMap((facet) => [...facet.properties.keys()]), ...a.required, ...a.forbidden]);
  const members: Member[] = [];
  for (const name of names) {
    const node = propertyNode(a, name);
    const impossible =
      a.forbidden.includes(name) ||
      !a.names.every((schema) => matchesNode(context, name, schema)) ||
      context.expand(node).length === 0;
    if (impossible && !required.has(name)) continue;
    const expr = impossible ? never : seq(text(JSON.stringify(name)), json.colon, emitter.node(node));
    members.push({ expr, required: required.has(name) });
  }
  const other = otherMember(emitter, a, [...names]);
  return json.around("{", sequence(emitter, a, members, other), "}");
}

/** The members one after the other; how many are written already is part of the rule where it matters. */
function sequence(emitter: Emitter, a: Alternative, members: readonly Member[], other: Expr): Expr {
  const { json, rules } = emitter;
  const needed = members.filter((member) => member.required).length;
  const min = a.minProperties <= needed ? 0 : a.minProperties;
  const max = a.maxProperties >= members.length && other.kind === "never" ? endless : a.maxProperties;
  if (min > members.length && other.kind === "never") return never;
  if (min > needed + 1 && other.kind !== "never") {
    // Two further names may be the same name twice, which counts once.
    throw tooComplex(a.sources.object, "minProperties cannot be expressed beside properties without a name.");
  }
  const cap = Math.max(1, min, max === endless ? 0 : Math.min(max, members.length + 1));
  if (members.length * cap > maxCells) throw tooComplex(a.sources.object, "too many properties to count.");

  // Built from the end: after[c] is what follows when c members (at least, when c is the cap) have been written.
  const counts = Array.from({ length: cap + 1 }, (_, c) => c);
  let after = counts.map((c) => closing(emitter, other, c, min, max));
  for (const member of [...members].reverse()) {
    const before = counts.map((c) => {
      const then = after[Math.min(c + 1, cap)] ?? never;
      const here = c >= max ? never : seq(c > 0 ? json.comma : empty, member.expr, then);
      return rules.set(rules.fresh("o"), member.required ? here : alt(here, after[c] ?? never));
    });
    after = before;
  }
  return after[0] ?? never;
}

/** What may follow the named properties when `count` of them are there. */
function closing(emitter: Emitter, other: Expr, count: number, min: number, max: number): Expr {
  if (count > max) return never;
  const left = Math.max(0, min - count);
  if (other.kind === "never") return left === 0 ? empty : never;
  const more = seq(emitter.json.comma, other);
  if (count > 0) return repeat(more, left, max - count);
  const some = max === 0 ? never : seq(other, repeat(more, Math.max(0, left - 1), max - 1));
  return left === 0 ? optional(some) : some;
}

/** A member whose name is none of `names`: never, when no such member may exist. */
function otherMember(emitter: Emitter, a: Alternative, names: readonly string[]): Expr {
  const { json, rules, context } = emitter;
  if (a.maxProperties === 0) return never;
  const patterns = a.objects.flatMap((facet) => facet.patterns);
  const rest: Node = [...new Set(a.objects.flatMap((facet) => facet.additional))];
  const possible = (node: Node): boolean => context.expand(node).length > 0;
  if (patterns.length === 0 && a.names.length === 0) {
    if (!possible(rest)) return never;
    const value = emitter.node(rest);
    const name = rules.fresh("other");
    if (names.length === 0) return rules.set(name, seq(json.string(), json.colon, value));
    const end = rules.set(`${name}-value`, seq(text('"'), json.colon, value));
    const key = emitDfa(
      rules,
      "key",
      trieComplement(names),
      (ranges) => json.charIn(ranges),
      () => end,
    );
    return rules.set(name, seq(text('"'), key));
  }
  return patternMember(emitter, a, names, possible);
}

function patternMember(
  emitter: Emitter,
  a: Alternative,
  names: readonly string[],
  possible: (n: Node) => boolean,
): Expr {
  const { json, rules, context } = emitter;
  const patterns = a.objects.flatMap((facet) => facet.patterns);
  const must: Automaton[] = a.names.map((node) =>
    stringAutomaton(context.expand(node).filter((b) => (b.kinds & kinds.string) !== 0)),
  );
  if (names.length > 0) must.push(complement(literals(names)));
  // Which patterns a name matches decides what its value must satisfy.
  const nodeOf = (label: string): Node => {
    let at = 0;
    const terms = a.objects.flatMap((facet) => {
      const hit = facet.patterns.filter(() => label[at++] === "1");
      return hit.length > 0 ? hit.flatMap(({ node }) => node) : facet.additional;
    });
    return [...new Set(terms)];
  };
  const labels = new Map<string, string | undefined>();
  const parts = [...must, ...patterns.map(({ automaton }) => automaton)];
  const label = (states: readonly number[]): string | undefined => {
    if (!must.every((part, i) => states[i] !== dead && part.accepts(states[i] ?? dead))) return undefined;
    const signature = patterns
      .map(({ automaton }, i) => {
        const state = states[must.length + i] ?? dead;
        return state !== dead && automaton.accepts(state) ? "1" : "0";
      })
      .join("");
    if (!labels.has(signature)) labels.set(signature, possible(nodeOf(signature)) ? signature : undefined);
    return labels.get(signature);
  };
  try {
    const dfa = explore(parts, { limit: maxPatternStates, allAlive: false, label });
    const ends = new Map<string, Expr>();
    const finish = (signature: string): Expr => {
      let end = ends.get(signature);
      if (end === undefined) {
        end = rules.set(rules.fresh("end"), seq(text('"'), json.colon, emitter.node(nodeOf(signature))));
        ends.set(signature, end);
      }
      return end;
    };
    const key = emitDfa(rules, "key", dfa, (ranges) => json.charIn(ranges), finish);
    if (key.kind === "never") return never;
    const name = rules.fresh("other");
    rules.set(name, seq(text('"'), key));
    return rule(name);
  } catch (error) {
    if (!(error instanceof TooManyStatesError)) throw error;
    throw tooComplex(a.sources.object, "the names of properties need too many states.");
  }
}
