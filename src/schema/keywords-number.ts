import { toDecimal } from "./decimal.js";
import type { Family } from "./families.js";
import type { Entry } from "./load.js";
import { type Alternative, anything, type Bound, kinds } from "./types.js";

const numbers = kinds.integer | kinds.fraction;

function source(entry: Entry, keyword: string): Alternative["sources"] {
  return { number: { pointer: entry.pointer, keyword } };
}

/** The bound that a keyword pair sets; draft 4's `exclusiveMinimum: true` makes `minimum` exclusive. */
function bounds(
  entry: Entry,
  plain: "minimum" | "maximum",
  exclusive: "exclusiveMinimum" | "exclusiveMaximum",
): Bound[] {
  const out: Bound[] = [];
  const { [plain]: inclusiveValue, [exclusive]: exclusiveValue } = entry.schema;
  if (typeof inclusiveValue === "number") {
    out.push({ value: toDecimal(inclusiveValue), exclusive: exclusiveValue === true });
  }
  if (typeof exclusiveValue === "number") out.push({ value: toDecimal(exclusiveValue), exclusive: true });
  return out;
}

function boundFamily(
  plain: "minimum" | "maximum",
  exclusive: "exclusiveMinimum" | "exclusiveMaximum",
  side: "lower" | "upper",
): Family {
  const other = side === "lower" ? "upper" : "lower";
  return {
    keywords: [plain, exclusive],
    assert: (context, entry) => {
      const all = bounds(entry, plain, exclusive).map((bound) => [
        { ...anything, [side]: bound, sources: source(entry, plain) },
      ]);
      return all.reduce<readonly Alternative[]>((a, b) => context.and(a, b, entry), [anything]);
    },
    deny: (_, entry) =>
      bounds(entry, plain, exclusive).map((bound) => ({
        ...anything,
        kinds: numbers,
        [other]: { value: bound.value, exclusive: !bound.exclusive },
        sources: source(entry, plain),
      })),
  };
}

export const numberFamilies: readonly Family[] = [
  boundFamily("minimum", "exclusiveMinimum", "lower"),
  boundFamily("maximum", "exclusiveMaximum", "upper"),
  {
    keywords: ["multipleOf"],
    assert: (_, entry) => [
      { ...anything, multiples: [toDecimal(Number(entry.schema.multipleOf))], sources: source(entry, "multipleOf") },
    ],
    deny: (_, entry) => [
      {
        ...anything,
        kinds: numbers,
        indivisible: [toDecimal(Number(entry.schema.multipleOf))],
        sources: source(entry, "multipleOf"),
      },
    ],
  },
];
