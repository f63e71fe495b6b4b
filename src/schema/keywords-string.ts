import { complement } from "./automaton.js";
import type { Context } from "./context.js";
import { maximumCount } from "./counts.js";
import { invalid, unsupported } from "./error.js";
import type { Family } from "./families.js";
import { formatAutomaton } from "./formats.js";
import type { Entry } from "./load.js";
import { type PatternAutomaton, patternAutomaton } from "./pattern.js";
import { PatternError } from "./pattern-parse.js";
import { type Alternative, anything, kinds } from "./types.js";

/** Compiles a pattern; what is wrong with it is reported at `keyword`. */
export function compilePattern(context: Context, entry: Entry, keyword: string, source: string): PatternAutomaton {
  try {
    return automatonFor(context, source);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    if (error.unsupported) throw unsupported(entry, keyword, `pattern not supported: ${error.message}.`);
    throw invalid(entry, keyword, `not a regular expression: ${error.message}.`);
  }
}

function automatonFor(context: Context, pattern: string): PatternAutomaton {
  let automaton = context.patterns.get(pattern);
  if (automaton === undefined) {
    automaton = patternAutomaton(pattern);
    context.patterns.set(pattern, automaton);
  }
  return automaton;
}

function source(entry: Entry, keyword: string): Alternative["sources"] {
  return { string: { pointer: entry.pointer, keyword } };
}

/** OpenAPI's formats of numbers; a double says nothing that JSON does not. */
const numberFormats: Readonly<Record<string, readonly [min: bigint, max: bigint] | undefined>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  float: undefined,
  double: undefined,
};

function assertFormat(entry: Entry): readonly Alternative[] {
  const name = String(entry.schema.format);
  if (name === "password") return [anything];
  if (Object.hasOwn(numberFormats, name)) {
    const range = numberFormats[name];
    if (range === undefined) return [anything];
    const [lower, upper] = range.map((digits) => ({ value: { digits, scale: 0 }, exclusive: false }));
    return [{ ...anything, lower, upper, sources: { number: { pointer: entry.pointer, keyword: "format" } } }];
  }
  return [{ ...anything, strings: [format(entry)], sources: source(entry, "format") }];
}

function format(entry: Entry): PatternAutomaton {
  const name = String(entry.schema.format);
  const automaton = formatAutomaton(name);
  if (automaton === undefined) throw unsupported(entry, "format", `format '${name.slice(0, 50)}' is not supported.`);
  return automaton;
}

export const stringFamilies: readonly Family[] = [
  {
    keywords: ["minLength"],
    assert: (_, entry) => [
      { ...anything, minLength: Number(entry.schema.minLength), sources: source(entry, "minLength") },
    ],
    deny: (_, entry) =>
      entry.schema.minLength === 0
        ? []
        : [{ ...anything, kinds: kinds.string, maxLength: Number(entry.schema.minLength) - 1 }],
  },
  {
    keywords: ["maxLength"],
    assert: (_, entry) => [
      { ...anything, maxLength: maximumCount(entry.schema.maxLength), sources: source(entry, "maxLength") },
    ],
    deny: (_, entry) =>
      maximumCount(entry.schema.maxLength) === Number.POSITIVE_INFINITY
        ? []
        : [{ ...anything, kinds: kinds.string, minLength: Number(entry.schema.maxLength) + 1 }],
  },
  {
    keywords: ["pattern"],
    assert: (context, entry) => [
      {
        ...anything,
        strings: [compilePattern(context, entry, "pattern", String(entry.schema.pattern))],
        sources: source(entry, "pattern"),
      },
    ],
    deny: (context, entry) => [
      {
        ...anything,
        kinds: kinds.string,
        strings: [complement(compilePattern(context, entry, "pattern", String(entry.schema.pattern)))],
        sources: source(entry, "pattern"),
      },
    ],
  },
  {
    keywords: ["format"],
    assert: (_, entry) => assertFormat(entry),
    deny: (_, entry) => [
      {
        ...anything,
        kinds: kinds.string,
        strings: [complement(format(entry))],
        sources: source(entry, "format"),
      },
    ],
  },
];
