import { matches } from "./automaton.js";
import type { Context } from "./context.js";
import { canonical } from "./context.js";
import { compare, isMultiple, toDecimal } from "./decimal.js";
import { type Alternative, type Json, kinds, type Node } from "./types.js";

/** Whether a value satisfies all terms of a node. */
export function matchesNode(context: Context, value: Json, node: Node): boolean {
  return node.every((term) => context.expandTerm(term).some((a) => matchesAlternative(context, value, a)));
}

export function matchesAlternative(context: Context, value: Json, a: Alternative): boolean {
  if ((a.kinds & kindOf(value)) === 0) return false;
  if (a.values !== undefined) {
    const text = canonical(value);
    return a.values.some((other) => canonical(other) === text);
  }
  if (typeof value === "string") return matchesString(value, a);
  if (typeof value === "number") return matchesNumber(value, a);
  if (Array.isArray(value)) return matchesArray(context, value, a);
  return typeof value !== "object" || value === null || matchesObject(context, value, a);
}

export function kindOf(value: Json): number {
  if (value === null) return kinds.null;
  if (typeof value === "boolean") return value ? kinds.true : kinds.false;
  if (typeof value === "number") return Number.isInteger(value) ? kinds.integer : kinds.fraction;
  if (typeof value === "string") return kinds.string;
  return Array.isArray(value) ? kinds.array : kinds.object;
}

function matchesString(value: string, a: Alternative): boolean {
  if (a.minLength > 0 || a.maxLength < value.length) {
    const length = [...value].length;
    if (length < a.minLength || length > a.maxLength) return false;
  }
  return a.strings.every((automaton) => matches(automaton, value));
}

function matchesNumber(value: number, a: Alternative): boolean {
  if (a.lower === undefined && a.upper === undefined && a.multiples.length + a.indivisible.length === 0) return true;
  const exact = toDecimal(value);
  if (a.lower !== undefined) {
    const order = compare(exact, a.lower.value);
    if (order < 0 || (order === 0 && a.lower.exclusive)) return false;
  }
  if (a.upper !== undefined) {
    const order = compare(exact, a.upper.value);
    if (order > 0 || (order === 0 && a.upper.exclusive)) return false;
  }
  if (a.indivisible.some((multiple) => isMultiple(exact, multiple))) return false;
  return a.multiples.every((multiple) => isMultiple(exact, multiple));
}

function matchesArray(context: Context, value: readonly Json[], a: Alternative): boolean {
  if (value.length < a.minItems || value.length > a.maxItems) return false;
  if (a.unique && new Set(value.map(canonical)).size < value.length) return false;
  for (const { prefix, rest } of a.arrays) {
    if (!value.every((item, i) => matchesNode(context, item, prefix[i] ?? rest))) return false;
  }
  return a.contains.every(({ node, min }) => value.filter((item) => matchesNode(context, item, node)).length >= min);
}

function matchesObject(context: Context, value: { [key: string]: Json }, a: Alternative): boolean {
  const keys = Object.keys(value);
  if (keys.length < a.minProperties || keys.length > a.maxProperties) return false;
  if (!a.required.every((name) => Object.hasOwn(value, name))) return false;
  if (a.forbidden.some((name) => Object.hasOwn(value, name))) return false;
  return keys.every(
    (key) =>
      a.names.every((node) => matchesNode(context, key, node)) &&
      matchesNode(context, value[key] ?? null, propertyNode(a, key)),
  );
}

/** What the value of property `name` must satisfy, over all that speaks about it. */
export function propertyNode(a: Alternative, name: string): Node {
  const out = new Set<number>();
  for (const facet of a.objects) {
    const own = facet.properties.get(name);
    let covered = own !== undefined;
    for (const term of own ?? []) out.add(term);
    for (const { automaton, node } of facet.patterns) {
      if (!matches(automaton, name)) continue;
      covered = true;
      for (const term of node) out.add(term);
    }
    if (!covered) for (const term of facet.additional) out.add(term);
  }
  return [...out];
}
