import type { Context } from "./context.js";
import { maximumCount } from "./counts.js";
import { unsupported } from "./error.js";
import type { Family } from "./families.js";
import { opposite } from "./keywords-array.js";
import { compilePattern } from "./keywords-string.js";
import { isJsonObject } from "./limits.js";
import type { Entry } from "./load.js";
import { type Alternative, anything, kinds, type Node, type ObjectFacet } from "./types.js";

const source = (entry: Entry, keyword: string): Alternative["sources"] => ({
  object: { pointer: entry.pointer, keyword },
});
const objects: Alternative = { ...anything, kinds: kinds.object };
const others: Alternative = { ...anything, kinds: anything.kinds & ~kinds.object };

export function entriesOf(value: unknown): [string, unknown][] {
  return isJsonObject(value) ? Object.entries(value) : [];
}

const applicatorsThatEvaluate = ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies"];

/** The schema for properties that no other keyword of this object covers. */
function additional(context: Context, entry: Entry): Node {
  const { schema } = entry;
  if (Object.hasOwn(schema, "additionalProperties")) {
    return context.document.child(entry, schema.additionalProperties, "additionalProperties");
  }
  if (!Object.hasOwn(schema, "unevaluatedProperties") || schema.unevaluatedProperties === true) return [];
  if (applicatorsThatEvaluate.some((keyword) => Object.hasOwn(schema, keyword))) {
    throw unsupported(entry, "unevaluatedProperties", "not supported beside keywords that apply further schemas.");
  }
  return context.document.child(entry, schema.unevaluatedProperties, "unevaluatedProperties");
}

function facet(context: Context, entry: Entry): ObjectFacet {
  const { schema } = entry;
  const properties = new Map<string, Node>();
  for (const [name, value] of entriesOf(schema.properties)) {
    properties.set(name, context.document.child(entry, value, "properties", name));
  }
  const patterns = entriesOf(schema.patternProperties).map(([pattern, value]) => ({
    automaton: compilePattern(context, { ...entry, pointer: `${entry.pointer}/patternProperties` }, pattern, pattern),
    node: context.document.child(entry, value, "patternProperties", pattern),
  }));
  return { properties, patterns, additional: additional(context, entry) };
}

/** An object that has `name` with a value satisfying `node`. */
export function has(name: string, node: Node): Alternative {
  if (node.length === 0) return { ...objects, required: [name] };
  return {
    ...objects,
    required: [name],
    objects: [{ properties: new Map([[name, node]]), patterns: [], additional: [] }],
  };
}

export function lacks(name: string): Alternative {
  return { ...objects, forbidden: [name] };
}

/** "If the object has `name`, then ...": everything else, or an object with it that satisfies `then`. */
function whenPresent(
  context: Context,
  entry: Entry,
  name: string,
  then: readonly Alternative[],
): readonly Alternative[] {
  return [{ ...others }, lacks(name), ...context.and(then, [has(name, [])], entry)];
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

/** dependentRequired, dependentSchemas and draft-07's dependencies as pairs of a name and what it asks for. */
function dependents(context: Context, entry: Entry): { name: string; required: string[]; node: Node }[] {
  const { schema } = entry;
  const out: { name: string; required: string[]; node: Node }[] = [];
  for (const [name, list] of entriesOf(schema.dependentRequired)) out.push({ name, required: names(list), node: [] });
  for (const keyword of ["dependentSchemas", "dependencies"]) {
    for (const [name, value] of entriesOf(schema[keyword])) {
      if (Array.isArray(value)) out.push({ name, required: names(value), node: [] });
      else out.push({ name, required: [], node: context.document.child(entry, value, keyword, name) });
    }
  }
  return out;
}

export const objectFamilies: readonly Family[] = [
  {
    keywords: ["properties", "patternProperties", "additionalProperties", "unevaluatedProperties"],
    assert: (context, entry) => [
      { ...anything, objects: [facet(context, entry)], sources: source(entry, "properties") },
    ],
    deny: (context, entry) => {
      const { properties, patterns, additional: rest } = facet(context, entry);
      if (patterns.some(({ node }) => node.length > 0)) {
        throw unsupported(entry, "patternProperties", "its opposite cannot be expressed.");
      }
      if (rest.length > 0) throw unsupported(entry, "additionalProperties", "its opposite cannot be expressed.");
      return [...properties].flatMap(([name, node]) => {
        const wrong = opposite(node);
        return wrong === undefined ? [] : [has(name, wrong)];
      });
    },
  },
  {
    keywords: ["required"],
    assert: (_, entry) => {
      const list = names(entry.schema.required);
      return [
        list.length === 0
          ? anything
          : { ...anything, required: [...new Set(list)], sources: source(entry, "required") },
      ];
    },
    deny: (_, entry) => names(entry.schema.required).map(lacks),
  },
  {
    keywords: ["minProperties"],
    assert: (_, entry) => [
      { ...anything, minProperties: Number(entry.schema.minProperties), sources: source(entry, "minProperties") },
    ],
    deny: (_, entry) =>
      entry.schema.minProperties === 0 ? [] : [{ ...objects, maxProperties: Number(entry.schema.minProperties) - 1 }],
  },
  {
    keywords: ["maxProperties"],
    assert: (_, entry) => [
      { ...anything, maxProperties: maximumCount(entry.schema.maxProperties), sources: source(entry, "maxProperties") },
    ],
    deny: (_, entry) =>
      maximumCount(entry.schema.maxProperties) === Number.POSITIVE_INFINITY
        ? []
        : [{ ...objects, minProperties: Number(entry.schema.maxProperties) + 1 }],
  },
  {
    keywords: ["propertyNames"],
    assert: (context, entry) => {
      const node = context.document.child(entry, entry.schema.propertyNames, "propertyNames");
      return [node.length === 0 ? anything : { ...anything, names: [node], sources: source(entry, "propertyNames") }];
    },
    deny: (_, entry) => {
      if (entry.schema.propertyNames === true) return [];
      throw unsupported(entry, "propertyNames", "its opposite cannot be expressed.");
    },
  },
  {
    keywords: ["dependentRequired", "dependentSchemas", "dependencies"],
    assert: (context, entry) =>
      dependents(context, entry).reduce<readonly Alternative[]>(
        (out, { name, required, node }) => {
          const then = required.length > 0 ? [{ ...objects, required: [...new Set(required)] }] : context.expand(node);
          return context.and(out, whenPresent(context, entry, name, then), entry);
        },
        [anything],
      ),
    deny: (context, entry) =>
      dependents(context, entry).flatMap(({ name, required, node }) => {
        const wrong = opposite(node);
        const broken = wrong === undefined ? required.map(lacks) : context.expand(wrong);
        return context.and([has(name, [])], broken, entry);
      }),
  },
];
