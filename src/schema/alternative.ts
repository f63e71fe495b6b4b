import { compare } from "./decimal.js";
import { type Alternative, type Bound, kinds } from "./types.js";

/** Both at once, `values` aside; undefined when nothing can satisfy both. */
export function both(a: Alternative, b: Alternative): Alternative | undefined {
  return tidy({
    kinds: a.kinds & b.kinds,
    values: a.values ?? b.values,
    minLength: Math.max(a.minLength, b.minLength),
    maxLength: Math.min(a.maxLength, b.maxLength),
    strings: concat(a.strings, b.strings),
    lower: tighter(a.lower, b.lower, 1),
    upper: tighter(a.upper, b.upper, -1),
    multiples: concat(a.multiples, b.multiples),
    indivisible: concat(a.indivisible, b.indivisible),
    arrays: concat(a.arrays, b.arrays),
    minItems: Math.max(a.minItems, b.minItems),
    maxItems: Math.min(a.maxItems, b.maxItems),
    unique: a.unique || b.unique,
    contains: concat(a.contains, b.contains),
    objects: concat(a.objects, b.objects),
    required: distinct(a.required, b.required),
    forbidden: distinct(a.forbidden, b.forbidden),
    names: concat(a.names, b.names),
    minProperties: Math.max(a.minProperties, b.minProperties),
    maxProperties: Math.min(a.maxProperties, b.maxProperties),
    sources: b.sources === a.sources ? a.sources : { ...a.sources, ...b.sources },
  });
}

/** Removes the kinds of values that the bounds leave no room for. */
function tidy(alternative: Alternative): Alternative | undefined {
  const a = alternative;
  if (a.minLength > a.maxLength) a.kinds &= ~kinds.string;
  if (a.minItems > a.maxItems) a.kinds &= ~kinds.array;
  if (a.minProperties > a.maxProperties || a.required.length > a.maxProperties) a.kinds &= ~kinds.object;
  if (a.forbidden.length > 0 && a.required.some((name) => a.forbidden.includes(name))) a.kinds &= ~kinds.object;
  if (a.lower !== undefined && a.upper !== undefined) {
    const order = compare(a.lower.value, a.upper.value);
    if (order > 0 || (order === 0 && (a.lower.exclusive || a.upper.exclusive))) {
      a.kinds &= ~(kinds.integer | kinds.fraction);
    }
  }
  return a.kinds === 0 ? undefined : a;
}

function tighter(a: Bound | undefined, b: Bound | undefined, direction: 1 | -1): Bound | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const order = compare(a.value, b.value) * direction;
  if (order === 0) return a.exclusive ? a : b;
  return order > 0 ? a : b;
}

function concat<T>(a: readonly T[], b: readonly T[]): readonly T[] {
  if (a.length === 0) return b;
  return b.length === 0 ? a : [...a, ...b];
}

function distinct(a: readonly string[], b: readonly string[]): readonly string[] {
  if (a.length === 0) return b;
  return b.length === 0 ? a : [...new Set([...a, ...b])];
}
