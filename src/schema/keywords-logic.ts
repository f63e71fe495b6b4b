import type { Context } from "./context.js";
import { Overlaps } from "./disjoint.js";
import { SchemaError, unsupported } from "./error.js";
import type { Family } from "./families.js";
import { opposite } from "./keywords-array.js";
import type { Entry } from "./load.js";
import { type Alternative, anything, type Node } from "./types.js";

function children(context: Context, entry: Entry, keyword: string): Node[] {
  const list = entry.schema[keyword];
  return Array.isArray(list) ? list.map((item, i) => context.document.child(entry, item, keyword, i)) : [];
}

function child(context: Context, entry: Entry, keyword: string): Node {
  return Object.hasOwn(entry.schema, keyword) ? context.document.child(entry, entry.schema[keyword], keyword) : [];
}

function deny(context: Context, node: Node): readonly Alternative[] {
  const wrong = opposite(node);
  return wrong === undefined ? [] : context.expand(wrong);
}

function all(context: Context, entry: Entry, parts: readonly (readonly Alternative[])[]): readonly Alternative[] {
  return parts.reduce<readonly Alternative[]>((a, b) => context.and(a, b, entry), [anything]);
}

/**
 * Exactly one of several schemas. Where no value can satisfy two of them it is a plain choice; where some can, each is
 * taken without those that it overlaps with, if their opposite can be written.
 */
function exactlyOne(context: Context, entry: Entry): readonly Alternative[] {
  const nodes = children(context, entry, "oneOf");
  const parts = nodes.map((node) => context.expand(node));
  const overlaps = new Overlaps(context, parts, entry);
  return parts.flatMap((part, i) => {
    const overlapping = nodes.filter((_, j) => j !== i && overlaps.between(i, j));
    if (overlapping.length === 0) return part;
    try {
      return all(context, entry, [part, ...overlapping.map((node) => deny(context, node))]);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      throw unsupported(
        entry,
        "oneOf",
        `schemas ${i} and others can hold at once, and that cannot be excluded (${error.keyword}).`,
      );
    }
  });
}

/** if/then/else as two cases; without `then` and `else`, `if` demands nothing. */
function cases(context: Context, entry: Entry): [condition: Node, consequence: Node, alternative: Node] | undefined {
  const { schema } = entry;
  if (!Object.hasOwn(schema, "if") || (!Object.hasOwn(schema, "then") && !Object.hasOwn(schema, "else")))
    return undefined;
  return [child(context, entry, "if"), child(context, entry, "then"), child(context, entry, "else")];
}

export const logicFamilies: readonly Family[] = [
  {
    keywords: ["$ref"],
    assert: (context, entry) => context.expand(context.document.resolve(entry, String(entry.schema.$ref))),
    deny: (context, entry) => deny(context, context.document.resolve(entry, String(entry.schema.$ref))),
  },
  {
    keywords: ["allOf"],
    assert: (context, entry) =>
      all(
        context,
        entry,
        children(context, entry, "allOf").map((node) => context.expand(node)),
      ),
    deny: (context, entry) => children(context, entry, "allOf").flatMap((node) => deny(context, node)),
  },
  {
    keywords: ["anyOf"],
    assert: (context, entry) => {
      const out = children(context, entry, "anyOf").flatMap((node) => context.expand(node));
      return out.includes(anything) ? [anything] : out;
    },
    deny: (context, entry) =>
      all(
        context,
        entry,
        children(context, entry, "anyOf").map((node) => deny(context, node)),
      ),
  },
  {
    keywords: ["oneOf"],
    assert: exactlyOne,
    deny: (context, entry) => {
      const nodes = children(context, entry, "oneOf");
      if (nodes.length > 8) throw unsupported(entry, "oneOf", "the opposite of more than 8 schemas is not supported.");
      const pairs = nodes.flatMap((a, i) => nodes.slice(i + 1).map((b) => [a, b] as const));
      return [
        ...all(
          context,
          entry,
          nodes.map((node) => deny(context, node)),
        ),
        ...pairs.flatMap(([a, b]) => context.and(context.expand(a), context.expand(b), entry)),
      ];
    },
  },
  {
    keywords: ["not"],
    assert: (context, entry) => deny(context, child(context, entry, "not")),
    deny: (context, entry) => context.expand(child(context, entry, "not")),
  },
  {
    keywords: ["if"],
    assert: (context, entry) => {
      const found = cases(context, entry);
      if (found === undefined) return [anything];
      const [condition, consequence, alternative] = found;
      return [
        ...context.and(context.expand(condition), context.expand(consequence), entry),
        ...context.and(deny(context, condition), context.expand(alternative), entry),
      ];
    },
    deny: (context, entry) => {
      const found = cases(context, entry);
      if (found === undefined) return [];
      const [condition, consequence, alternative] = found;
      return [
        ...context.and(context.expand(condition), deny(context, consequence), entry),
        ...context.and(deny(context, condition), deny(context, alternative), entry),
      ];
    },
  },
];
