import { both } from "./alternative.js";
import { invalid, type Place, unsupported } from "./error.js";
import { families } from "./families.js";
import type { Deadline } from "./limits.js";
import type { Entry, SchemaDocument } from "./load.js";
import { matchesAlternative } from "./match.js";
import type { PatternAutomaton } from "./pattern.js";
import { type Alternative, anything, type Json, kinds, type Node, type Term } from "./types.js";

/** Alternatives of one schema beyond which it is refused: their products grow fast. */
const maxAlternatives = 256;
/** Conjunctions of schemas beyond which a document is refused. */
const maxNodes = 20_000;
const mergeBudget = 200_000;
/** References and nested choices at one place: each takes some stack. */
const maxChain = 200;

/**
 * Turns schemas into alternatives. A node is a conjunction of schemas at the same place; what it expands to is kept,
 * so each is worked out once however often it is referred to.
 */
export class Context {
  private readonly terms = new Map<Term, readonly Alternative[]>();
  private readonly nodes = new Map<string, readonly Alternative[]>();
  /** Terms being expanded: meeting one again means a reference that leads back without going deeper into the value. */
  private readonly open = new Set<Term>();
  /** Automata by pattern: equal patterns are one object, and are walked once. */
  readonly patterns = new Map<string, PatternAutomaton>();
  private merges = 0;

  constructor(
    readonly document: SchemaDocument,
    private readonly deadline: Deadline,
  ) {}

  expand(node: Node): readonly Alternative[] {
    if (node.length === 0) return [anything];
    if (node.length === 1 && node[0] !== undefined) return this.expandTerm(node[0]);
    const key = nodeKey(node);
    const known = this.nodes.get(key);
    if (known !== undefined) return known;
    const place = this.document.entry(node[0] ?? 1);
    if (this.nodes.size > maxNodes) throw unsupported(place, "", "too many combinations of schemas.");
    let out: readonly Alternative[] = [anything];
    for (const term of normal(node)) out = this.and(out, this.expandTerm(term), place);
    this.nodes.set(key, out);
    return out;
  }

  /** Every pair of one from `a` and one from `b`, impossible ones left out. */
  and(a: readonly Alternative[], b: readonly Alternative[], place: Place): readonly Alternative[] {
    if (a.length === 1 && a[0] === anything) return b;
    if (b.length === 1 && b[0] === anything) return a;
    const out: Alternative[] = [];
    for (const left of a) {
      for (const right of b) {
        if (++this.merges > mergeBudget) throw unsupported(place, "", "too many combinations of alternatives.");
        this.deadline.check(place);
        const merged = this.merge(left, right);
        if (merged !== undefined) out.push(merged);
      }
    }
    if (out.length > maxAlternatives && out.length > a.length + b.length) {
      throw unsupported(place, "", "too many combinations of alternatives.");
    }
    return out;
  }

  merge(a: Alternative, b: Alternative): Alternative | undefined {
    const merged = both(a, b);
    if (merged === undefined || merged.values === undefined) return merged;
    const keep = (value: Json): boolean =>
      (b.values === undefined || a.values === undefined || includes(b.values, value)) &&
      matchesAlternative(this, value, { ...merged, values: undefined });
    const values = merged.values.filter(keep);
    return values.length === 0 ? undefined : { ...anything, values };
  }

  expandTerm(term: Term): readonly Alternative[] {
    const known = this.terms.get(term);
    if (known !== undefined) return known;
    const entry = this.document.entry(term);
    this.deadline.check(entry);
    if (this.open.has(term)) {
      throw invalid(
        entry,
        "$ref" in entry.schema ? "$ref" : "",
        "refers back to itself without any step into the value.",
      );
    }
    if (this.open.size > maxChain) throw unsupported(entry, "", "too long a chain of schemas at one place.");
    this.open.add(term);
    try {
      const out = term > 0 ? this.assert(entry) : this.deny(entry);
      this.terms.set(term, out);
      return out;
    } finally {
      this.open.delete(term);
    }
  }

  private assert(entry: Entry): readonly Alternative[] {
    let out: readonly Alternative[] = [anything];
    for (const family of families) {
      if (!family.keywords.some((keyword) => Object.hasOwn(entry.schema, keyword))) continue;
      out = this.and(out, family.assert(this, entry), entry);
    }
    // OpenAPI 3.0: beside its other keywords, the schema takes null.
    return entry.schema.nullable === true ? [...out, { ...anything, kinds: kinds.null }] : out;
  }

  private deny(entry: Entry): readonly Alternative[] {
    const out: Alternative[] = [];
    for (const family of families) {
      if (!family.keywords.some((keyword) => Object.hasOwn(entry.schema, keyword))) continue;
      out.push(...family.deny(this, entry));
    }
    if (entry.schema.nullable !== true) return out;
    return this.and(out, [{ ...anything, kinds: anything.kinds & ~kinds.null }], entry);
  }
}

/** The terms in the order given, once each: the order of properties follows it. */
export function normal(node: Node): Node {
  return [...new Set(node)];
}

export function nodeKey(node: Node): string {
  return node.length < 2 ? node.join() : normal(node).join();
}

function includes(values: readonly Json[], value: Json): boolean {
  const text = JSON.stringify(value);
  return values.some((other) => other === value || sameJson(other, value, text));
}

function sameJson(a: Json, b: Json, text: string): boolean {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return a === b;
  return JSON.stringify(a) === text || canonical(a) === canonical(b);
}

/** JSON with sorted keys: equal texts for equal values. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value === 0 ? 0 : value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key] ?? null)}`).join()}}`;
}
