import { complement, literals } from "./automaton.js";
import { toDecimal } from "./decimal.js";
import { unsupported } from "./error.js";
import type { Family } from "./families.js";
import type { Entry } from "./load.js";
import { type Alternative, allKinds, anything, type Json, kinds } from "./types.js";

const kindsByName: Readonly<Record<string, number>> = {
  null: kinds.null,
  boolean: kinds.true | kinds.false,
  integer: kinds.integer,
  number: kinds.integer | kinds.fraction,
  string: kinds.string,
  array: kinds.array,
  object: kinds.object,
};

function typeKinds(entry: Entry): number {
  const { type } = entry.schema;
  const names = Array.isArray(type) ? type : [type];
  return names.reduce<number>((all, name) => all | (kindsByName[String(name)] ?? 0), 0);
}

/** Numbers that differ from each of `values`: the stretches between them. */
function otherNumbers(values: readonly number[]): Alternative[] {
  const numbers = kinds.integer | kinds.fraction;
  const sorted = [...new Set(values)]
    .sort((a, b) => a - b)
    .map((value) => ({ value: toDecimal(value), exclusive: true }));
  return [undefined, ...sorted].map((lower, i) => ({ ...anything, kinds: numbers, lower, upper: sorted[i] }));
}

function denyValues(entry: Entry, keyword: string, values: readonly Json[]): Alternative[] {
  let rest = allKinds;
  const strings: string[] = [];
  const numbers: number[] = [];
  for (const value of values) {
    if (value === null) rest &= ~kinds.null;
    else if (typeof value === "boolean") rest &= ~(value ? kinds.true : kinds.false);
    else if (typeof value === "string") strings.push(value);
    else if (typeof value === "number") numbers.push(value);
    else throw unsupported(entry, keyword, "excluding arrays or objects cannot be expressed.");
  }
  if (numbers.length > 16) throw unsupported(entry, keyword, "excluding more than 16 numbers is not supported.");
  const automata = strings.length > 0 ? [complement(literals(strings))] : [];
  const sources = { string: { pointer: entry.pointer, keyword } };
  if (numbers.length === 0) return [{ ...anything, kinds: rest, strings: automata, sources }];
  const others = rest & ~(kinds.integer | kinds.fraction);
  return [{ ...anything, kinds: others, strings: automata, sources }, ...otherNumbers(numbers)];
}

function enumValues(entry: Entry): readonly Json[] {
  return Array.isArray(entry.schema.enum) ? (entry.schema.enum as Json[]) : [];
}

export const typeFamilies: readonly Family[] = [
  {
    keywords: ["type"],
    assert: (_, entry) => [{ ...anything, kinds: typeKinds(entry) }],
    deny: (_, entry) => {
      const rest = allKinds & ~typeKinds(entry);
      return rest === 0 ? [] : [{ ...anything, kinds: rest }];
    },
  },
  {
    keywords: ["enum"],
    assert: (_, entry) => [{ ...anything, values: enumValues(entry) }],
    deny: (_, entry) => denyValues(entry, "enum", enumValues(entry)),
  },
  {
    keywords: ["const"],
    assert: (_, entry) => [{ ...anything, values: [entry.schema.const as Json] }],
    deny: (_, entry) => denyValues(entry, "const", [entry.schema.const as Json]),
  },
];
