type Next = () => number;
type Obj = Record<string, unknown>;

const names = ["a", "b", "ab", "x_1", 'q"'];
const words = ["", "a", "b", "ab", "ba", "aab", "x_1", 'q"', "é", "10", "a\n"];
const patterns = ["^a", "b$", "^a*b?$", "a|b", "^[^a]+$", "^\\w{1,3}$", "^(?:ab|x_)", "\\d", "^$", '"', "^.$"];

const pick = <T>(next: Next, list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
const chance = (next: Next, p: number): boolean => next() < p;
const int = (next: Next, max: number): number => Math.floor(next() * (max + 1));

/** A JSON value, small; objects have at most one key beyond `depth` 0, so that no order of keys is in question. */
export function randomValue(next: Next, depth: number): unknown {
  const kind = int(next, depth > 0 ? 6 : 4);
  if (kind === 0) return pick(next, [null, true, false]);
  if (kind === 1) return int(next, 24) - 8;
  if (kind === 2) return (int(next, 200) - 60) / 8;
  if (kind <= 4) return pick(next, words);
  if (kind === 5) return Array.from({ length: int(next, 3) }, () => randomValue(next, depth - 1));
  return chance(next, 0.3) ? {} : { [pick(next, names)]: randomValue(next, depth - 1) };
}

/** A schema out of what is supported, including combinations that no one would write. */
export function randomSchema(next: Next, depth: number): unknown {
  if (chance(next, 0.04)) return chance(next, 0.8);
  const out: Obj = {};
  const parts = 1 + int(next, 2);
  for (let i = 0; i < parts; i++) Object.assign(out, randomPart(next, depth));
  return out;
}

function randomPart(next: Next, depth: number): Obj {
  const kind = int(next, depth > 0 ? 11 : 5);
  switch (kind) {
    case 0: {
      const type = (): string => pick(next, ["null", "boolean", "integer", "number", "string", "array", "object"]);
      return { type: chance(next, 0.7) ? type() : [...new Set([type(), type()])] };
    }
    case 1:
      return { enum: dedupe(Array.from({ length: 1 + int(next, 4) }, () => randomValue(next, 1))) };
    case 2:
      return randomNumbers(next);
    case 3:
      return randomStrings(next);
    case 4:
      return { type: "string", ...randomStrings(next) };
    case 5:
      return { type: pick(next, ["integer", "number"]), ...randomNumbers(next) };
    case 6:
      return randomArrays(next, depth);
    case 7:
    case 8:
      return { ...(chance(next, 0.7) ? { type: "object" } : {}), ...randomObjects(next, depth) };
    case 9:
      return {
        [pick(next, ["anyOf", "allOf", "oneOf"])]: Array.from({ length: 1 + int(next, 2) }, () =>
          randomSchema(next, depth - 1),
        ),
      };
    case 10:
      return { not: randomSchema(next, depth - 1) };
    default: {
      const branch = (): unknown => randomSchema(next, depth - 1);
      return Object.fromEntries(["if", "then", "else"].map((keyword) => [keyword, branch()]));
    }
  }
}

function dedupe(values: unknown[]): unknown[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

function randomNumbers(next: Next): Obj {
  const out: Obj = {};
  const bound = (): number => (chance(next, 0.6) ? int(next, 40) - 15 : (int(next, 200) - 60) / 8);
  if (chance(next, 0.5)) out[pick(next, ["minimum", "exclusiveMinimum"])] = bound();
  if (chance(next, 0.5)) out[pick(next, ["maximum", "exclusiveMaximum"])] = bound();
  // Powers of two and whole numbers: ajv divides in floating point.
  if (chance(next, 0.3)) out.multipleOf = pick(next, [1, 2, 3, 7, 12, 0.5, 0.25, 2.5]);
  return out;
}

function randomStrings(next: Next): Obj {
  const out: Obj = {};
  if (chance(next, 0.4)) out.minLength = int(next, 3);
  if (chance(next, 0.4)) out.maxLength = int(next, 4);
  if (chance(next, 0.5)) out.pattern = pick(next, patterns);
  return out;
}

function randomArrays(next: Next, depth: number): Obj {
  const out: Obj = chance(next, 0.7) ? { type: "array" } : {};
  if (chance(next, 0.7)) out.items = randomSchema(next, depth - 1);
  if (chance(next, 0.3))
    out.prefixItems = Array.from({ length: 1 + int(next, 1) }, () => randomSchema(next, depth - 1));
  if (chance(next, 0.3)) out.minItems = int(next, 2);
  if (chance(next, 0.3)) out.maxItems = int(next, 3);
  if (chance(next, 0.15)) out.contains = randomSchema(next, depth - 1);
  if (chance(next, 0.15)) out.uniqueItems = true;
  return out;
}

function randomObjects(next: Next, depth: number): Obj {
  const out: Obj = {};
  const some = (): string[] => names.filter(() => chance(next, 0.35));
  const map = (keys: string[]): Obj => Object.fromEntries(keys.map((key) => [key, randomSchema(next, depth - 1)]));
  if (chance(next, 0.8)) out.properties = map(some());
  if (chance(next, 0.4)) out.required = some();
  if (chance(next, 0.4)) out.additionalProperties = chance(next, 0.5) ? false : randomSchema(next, depth - 1);
  if (chance(next, 0.2)) out.patternProperties = map([pick(next, patterns)]);
  if (chance(next, 0.15)) out.propertyNames = chance(next, 0.5) ? { pattern: pick(next, patterns) } : { maxLength: 2 };
  if (chance(next, 0.15)) out.minProperties = int(next, 2);
  if (chance(next, 0.15)) out.maxProperties = int(next, 3);
  if (chance(next, 0.1)) out.dependentRequired = { [pick(next, names)]: some() };
  if (chance(next, 0.1)) out.dependentSchemas = map([pick(next, names)]);
  return out;
}

export const formats = [
  ...["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6"],
  ...["uri", "uri-reference", "uuid", "json-pointer", "regex"],
];

/** A whole document: often one with definitions, which may be recursive, references with siblings, and formats. */
export function randomDocument(next: Next): unknown {
  if (chance(next, 0.6)) return randomSchema(next, 3);
  const reference = (): Obj => ({
    $ref: `#/$defs/${pick(next, ["x", "y", "z"])}`,
    ...(chance(next, 0.3) ? randomPart(next, 1) : {}),
  });
  const node = (): unknown => {
    const kind = int(next, 4);
    if (kind === 0) return reference();
    if (kind === 1) return { type: "array", items: reference(), maxItems: int(next, 3) };
    if (kind === 2) return { type: "string", format: pick(next, formats) };
    if (kind === 3) return { anyOf: [{ type: "null" }, reference()] };
    return randomSchema(next, 2);
  };
  return {
    $defs: {
      x: { type: "object", properties: { n: node(), v: node() }, required: ["v"], additionalProperties: false },
      y: node(),
      z: randomSchema(next, 1),
    },
    ...(chance(next, 0.5)
      ? reference()
      : {
          type: "object",
          properties: { p: node(), q: node() },
          required: ["p"],
          additionalProperties: chance(next, 0.3),
        }),
  };
}
