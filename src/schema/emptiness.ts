import type { Context } from "./context.js";
import { SchemaError } from "./error.js";
import { explore } from "./explore.js";
import { propertyNode } from "./match.js";
import { type Alternative, kinds, type Node } from "./types.js";

/**
 * Whether certainly no value satisfies any of the alternatives. "No" may mean "not proven": callers then take the
 * careful way. Looks `depth` levels into required properties and first items.
 */
export function isEmpty(context: Context, alternatives: readonly Alternative[], depth = 3): boolean {
  return alternatives.every((a) => {
    if (a.values !== undefined) return a.values.length === 0;
    let left = a.kinds;
    if ((left & kinds.object) !== 0 && depth > 0) {
      const hopeless = a.required.some((name) => nodeIsEmpty(context, propertyNode(a, name), depth - 1));
      if (hopeless) left &= ~kinds.object;
    }
    if ((left & kinds.array) !== 0 && depth > 0 && a.minItems > 0) {
      const first = a.arrays.flatMap((facet) => facet.prefix[0] ?? facet.rest);
      if (nodeIsEmpty(context, first, depth - 1)) left &= ~kinds.array;
    }
    if (left === kinds.string && a.strings.length > 1 && noString(a)) left = 0;
    return left === 0;
  });
}

function nodeIsEmpty(context: Context, node: Node, depth: number): boolean {
  try {
    return isEmpty(context, context.expand(node), depth);
  } catch (error) {
    // Also a recursive schema that is being worked out just now: nothing is proven.
    if (error instanceof SchemaError) return false;
    throw error;
  }
}

function noString(a: Alternative): boolean {
  try {
    const dfa = explore(a.strings, {
      limit: 500,
      allAlive: true,
      label: (states) => (a.strings.every((part, i) => part.accepts(states[i] ?? -1)) ? "" : undefined),
    });
    return dfa.states.length === 0;
  } catch {
    return false;
  }
}
