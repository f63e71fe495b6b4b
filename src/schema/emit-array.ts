import { canonical } from "./context.js";
import type { Emitter } from "./emit.js";
import { tooComplex } from "./emit-string.js";
import { alt, type Expr, empty, never, optional, repeat, seq, text } from "./gbnf.js";
import { type Alternative, type Json, kinds, type Node } from "./types.js";

const endless = Number.POSITIVE_INFINITY;

/** What element `index` must satisfy; beyond every prefix it is always the same. */
function itemNode(a: Alternative, index: number): Node {
  return [...new Set(a.arrays.flatMap(({ prefix, rest }) => prefix[index] ?? rest))];
}

export function emitArray(emitter: Emitter, a: Alternative): Expr {
  const { json } = emitter;
  const prefix = a.arrays.reduce((longest, facet) => Math.max(longest, facet.prefix.length), 0);
  if (a.unique && a.maxItems > 1) return emitUnique(emitter, a, prefix);
  if (a.contains.length > 0) return emitContains(emitter, a, prefix);
  const rest = emitter.node(itemNode(a, prefix));
  if (prefix === 0) return json.around("[", list(emitter, rest, a.minItems, a.maxItems), "]");

  const { minItems: min, maxItems: max } = a;
  let tail = max <= prefix ? empty : repeat(seq(json.comma, rest), Math.max(0, min - prefix), max - prefix);
  for (let i = prefix - 1; i >= 1; i--) {
    const more = i >= max ? never : seq(json.comma, emitter.node(itemNode(a, i)), tail);
    tail = emitter.rules.set(emitter.rules.fresh("items"), i >= min ? optional(more) : more);
  }
  const all = max === 0 ? never : seq(emitter.node(itemNode(a, 0)), tail);
  return json.around("[", min === 0 ? optional(all) : all, "]");
}

function list(emitter: Emitter, item: Expr, min: number, max: number): Expr {
  if (max === 0) return empty;
  const some = seq(item, repeat(seq(emitter.json.comma, item), Math.max(0, min - 1), max - 1));
  return min === 0 ? optional(some) : some;
}

/** At least so many elements of one kind, anything else between them. */
function emitContains(emitter: Emitter, a: Alternative, prefix: number): Expr {
  const [only, second] = a.contains;
  const refuse = (why: string): Error => tooComplex(a.sources.array, `contains cannot be expressed ${why}.`);
  if (only === undefined || second !== undefined) throw refuse("more than once");
  if (prefix > 0) throw refuse("beside prefixItems");
  if (a.minItems > only.min) throw refuse("beside minItems");
  if (a.maxItems !== endless) throw refuse("beside maxItems");
  const { json, rules } = emitter;
  const any = emitter.node(itemNode(a, 0));
  const wanted = emitter.node([...new Set([...itemNode(a, 0), ...only.node])]);
  const upTo = rules.set(rules.fresh("until"), seq(repeat(seq(any, json.comma), 0, endless), wanted));
  const more = repeat(seq(json.comma, upTo), only.min - 1, only.min - 1);
  return json.around("[", seq(upTo, more, repeat(seq(json.comma, any), 0, endless)), "]");
}

const maxUnique = 8;

/** Elements out of a small set, none twice: one rule for each set of elements already written. */
function emitUnique(emitter: Emitter, a: Alternative, prefix: number): Expr {
  const refuse = (why: string): Error => tooComplex(a.sources.array, `uniqueItems cannot be expressed ${why}.`);
  if (prefix > 0) throw refuse("beside prefixItems");
  if (a.contains.length > 0) throw refuse("beside contains");
  const values = finiteValues(emitter, itemNode(a, 0));
  if (values === undefined) throw refuse("unless items lists its values (enum, const, boolean, null)");
  if (values.length > maxUnique) throw refuse(`over more than ${maxUnique} values`);
  const { json, rules } = emitter;
  const stem = rules.fresh("unique");
  const full = 2 ** values.length;
  const name = (used: number): string => `${stem}-${used}`;
  for (let used = full - 1; used >= 0; used--) {
    const count = values.filter((_, i) => (used & (1 << i)) !== 0).length;
    const next = values.map((value, i) => {
      if ((used & (1 << i)) !== 0 || count >= a.maxItems) return never;
      const element = seq(count > 0 ? json.comma : empty, text(JSON.stringify(value)));
      return seq(element, { kind: "rule", name: name(used | (1 << i)) });
    });
    const more = alt(...next);
    rules.set(name(used), count >= a.minItems ? optional(more) : more);
  }
  return json.around("[", { kind: "rule", name: name(0) }, "]");
}

/** All values of a node, when they can be listed. */
function finiteValues(emitter: Emitter, node: Node): Json[] | undefined {
  const found = new Map<string, Json>();
  for (const a of emitter.context.expand(node)) {
    if (a.values === undefined && (a.kinds & ~(kinds.null | kinds.true | kinds.false)) !== 0) return undefined;
    const values = a.values ?? [null, true, false].filter((_, i) => (a.kinds & (1 << i)) !== 0);
    for (const value of values) found.set(canonical(value), value);
  }
  return [...found.values()];
}
