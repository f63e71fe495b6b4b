import type { Context } from "./context.js";
import { maximumCount } from "./counts.js";
import { unsupported } from "./error.js";
import type { Family } from "./families.js";
import type { Entry } from "./load.js";
import { type Alternative, type ArrayFacet, anything, kinds, type Node } from "./types.js";

const source = (entry: Entry, keyword: string): Alternative["sources"] => ({
  array: { pointer: entry.pointer, keyword },
});

/** `prefixItems` and `items`, or draft-07's array of `items` and `additionalItems`. */
function facet(context: Context, entry: Entry): ArrayFacet {
  const { schema } = entry;
  const { document } = context;
  const old = Array.isArray(schema.items);
  const listKeyword = old ? "items" : "prefixItems";
  const restKeyword = old ? "additionalItems" : "items";
  const list = schema[listKeyword];
  const prefix = Array.isArray(list) ? list.map((item, i) => document.child(entry, item, listKeyword, i)) : [];
  const rest = Object.hasOwn(schema, restKeyword) ? document.child(entry, schema[restKeyword], restKeyword) : [];
  return { prefix, rest };
}

/** The one-term opposite of a node; a node of several terms never comes from a single schema. */
export function opposite(node: Node): Node | undefined {
  return node.length === 1 && node[0] !== undefined ? [-node[0]] : undefined;
}

const arrays = { ...anything, kinds: kinds.array };

export const arrayFamilies: readonly Family[] = [
  {
    keywords: ["items", "prefixItems", "additionalItems"],
    assert: (context, entry) => {
      const { prefix, rest } = facet(context, entry);
      if (prefix.length === 0 && rest.length === 0) return [anything];
      return [{ ...anything, arrays: [{ prefix, rest }], sources: source(entry, "items") }];
    },
    deny: (context, entry) => {
      const { prefix, rest } = facet(context, entry);
      const out: Alternative[] = [];
      prefix.forEach((node, i) => {
        const wrong = opposite(node);
        if (wrong === undefined) return;
        const nodes = prefix.map((_, j): Node => (i === j ? wrong : []));
        out.push({ ...arrays, minItems: i + 1, arrays: [{ prefix: nodes, rest: [] }] });
      });
      const wrong = opposite(rest);
      if (wrong === undefined) return out;
      if (prefix.length > 0) throw unsupported(entry, "items", "its opposite cannot be expressed beside prefixItems.");
      return [...out, { ...arrays, contains: [{ node: wrong, min: 1 }], sources: source(entry, "items") }];
    },
  },
  {
    keywords: ["minItems"],
    assert: (_, entry) => [
      { ...anything, minItems: Number(entry.schema.minItems), sources: source(entry, "minItems") },
    ],
    deny: (_, entry) =>
      entry.schema.minItems === 0 ? [] : [{ ...arrays, maxItems: Number(entry.schema.minItems) - 1 }],
  },
  {
    keywords: ["maxItems"],
    assert: (_, entry) => [
      { ...anything, maxItems: maximumCount(entry.schema.maxItems), sources: source(entry, "maxItems") },
    ],
    deny: (_, entry) =>
      maximumCount(entry.schema.maxItems) === Number.POSITIVE_INFINITY
        ? []
        : [{ ...arrays, minItems: Number(entry.schema.maxItems) + 1 }],
  },
  {
    keywords: ["uniqueItems"],
    assert: (_, entry) =>
      entry.schema.uniqueItems === true
        ? [{ ...anything, unique: true, sources: source(entry, "uniqueItems") }]
        : [anything],
    deny: (_, entry) => {
      if (entry.schema.uniqueItems !== true) return [];
      throw unsupported(entry, "uniqueItems", "its opposite cannot be expressed.");
    },
  },
  {
    keywords: ["contains", "minContains", "maxContains"],
    assert: (context, entry) => {
      const { schema } = entry;
      // Without `contains`, its counts mean nothing.
      if (!Object.hasOwn(schema, "contains")) return [anything];
      const node = context.document.child(entry, schema.contains, "contains");
      const min = Number(schema.minContains ?? 1);
      const out: Alternative = {
        ...anything,
        contains: min > 0 ? [{ node, min }] : [],
        sources: source(entry, "contains"),
      };
      if (schema.maxContains === undefined) return [out];
      const none = opposite(node);
      if (schema.maxContains !== 0) throw unsupported(entry, "maxContains", "counts above 0 cannot be expressed.");
      if (none === undefined) return [{ ...out, maxItems: 0 }];
      return [{ ...out, arrays: [{ prefix: [], rest: none }] }];
    },
    deny: (context, entry) => {
      const { schema } = entry;
      if (!Object.hasOwn(schema, "contains")) return [];
      if (schema.minContains === 0 && schema.maxContains === undefined) return [];
      if (Number(schema.minContains ?? 1) !== 1 || schema.maxContains !== undefined) {
        throw unsupported(entry, "contains", "the opposite of counts cannot be expressed.");
      }
      const none = opposite(context.document.child(entry, schema.contains, "contains"));
      if (none === undefined) return [{ ...arrays, maxItems: 0 }];
      return [{ ...arrays, arrays: [{ prefix: [], rest: none }] }];
    },
  },
  {
    keywords: ["unevaluatedItems"],
    assert: (_, entry) => {
      const { schema } = entry;
      if (schema.unevaluatedItems === true) return [anything];
      throw unsupported(entry, "unevaluatedItems", "only `true` is supported; use items instead.");
    },
    deny: (_, entry) => {
      if (entry.schema.unevaluatedItems === true) return [];
      throw unsupported(entry, "unevaluatedItems", "only `true` is supported.");
    },
  },
];
