import { describe, expect, it } from "vitest";
import { compileSchema, SchemaError } from "../../src/schema/index.js";
import { accepts } from "../support/gbnf-matcher.js";
import { parseGbnf } from "../support/gbnf-parse.js";
import { random } from "../support/gbnf-sample.js";
import { randomSchema } from "./random-schema.js";

function nest(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let schema: unknown = { type: "string" };
  for (let i = 0; i < depth; i++) schema = wrap(schema);
  return schema;
}

const chain = (length: number): unknown => ({
  $ref: "#/$defs/d0",
  $defs: Object.fromEntries(
    Array.from({ length }, (_, i) => [`d${i}`, i + 1 < length ? { $ref: `#/$defs/d${i + 1}` } : { type: "null" }]),
  ),
});

const cyclic: Record<string, unknown> = { type: "array" };
cyclic.items = cyclic;

/** Schemas made to hurt: each must be refused within a second, and nothing may crash. */
const poison: [name: string, schema: unknown][] = [
  ["2,000 levels of items", nest(2000, (items) => ({ type: "array", items }))],
  ["100,000 levels of not", nest(100_000, (not) => ({ not }))],
  ["3,000 levels of allOf", nest(3000, (inner) => ({ allOf: [inner] }))],
  ["an object that holds itself", cyclic],
  ["a loop of references", { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }],
  ["a reference to itself", { $ref: "#" }],
  ["a loop through allOf", { $defs: { a: { allOf: [{ type: "object" }, { $ref: "#/$defs/a" }] } }, $ref: "#/$defs/a" }],
  ["a loop through not", { not: { $ref: "#" } }],
  ["a chain of 4,000 references", chain(4000)],
  [
    "products of anyOf",
    {
      allOf: Array.from({ length: 30 }, (_, i) => ({
        anyOf: [{ required: [`a${i}`] }, { minimum: i }, { pattern: `^${i}` }],
      })),
    },
  ],
  ["a pattern whose automaton explodes", { type: "string", pattern: "^(a|b)*a(a|b){20}$|x$" }],
  ["nested counts", { type: "string", pattern: "((((a{1,100}){1,100}){1,100}){1,100}b|c$)" }],
  ["deep groups", { type: "string", pattern: `${"(".repeat(5000)}a${")".repeat(5000)}` }],
  ["a long pattern", { type: "string", pattern: "a".repeat(100_000) }],
  ["a repeated star", { type: "string", pattern: "^(a**)$" }],
  ["an endless class", { type: "string", pattern: "[a" }],
  ["a large divisor", { type: "integer", multipleOf: 999_983 }],
  ["a multiple out of reach", { type: "integer", multipleOf: 7, minimum: 1e300 }],
  ["a huge divisor", { type: "integer", multipleOf: 1e300 }],
  ["6,000 properties", { properties: Object.fromEntries(Array.from({ length: 6000 }, (_, i) => [`p${i}`, {}])) }],
  ["6,000 enum values", { enum: Array.from({ length: 6000 }, (_, i) => i) }],
  ["a megabyte", { description: "x".repeat(1_000_000) }],
  ["not JSON: a function", { default: () => 1 }],
  ["not JSON: NaN", { minimum: Number.NaN }],
  ["a billion items", { type: "array", items: { type: "string" }, minItems: 1_000_000_000 }],
  ["not JSON: a Map", { properties: new Map() }],
  ["undefined", undefined],
  [
    "counted properties",
    {
      type: "object",
      additionalProperties: false,
      minProperties: 900,
      properties: Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`p${i}`, {}])),
    },
  ],
  [
    "pattern properties that multiply",
    {
      type: "object",
      patternProperties: Object.fromEntries(Array.from({ length: 14 }, (_, i) => [`a.{${i}}b`, { minimum: i }])),
    },
  ],
];

describe("poison", () => {
  it.each(poison)("%s", (_, schema) => {
    const before = performance.now();
    expect(() => compileSchema(schema)).toThrow(SchemaError);
    expect(performance.now() - before).toBeLessThan(1000);
  });
});

function median(run: () => void): number {
  const times = Array.from({ length: 9 }, () => {
    const before = performance.now();
    run();
    return performance.now() - before;
  });
  return times.sort((a, b) => a - b)[4] ?? 0;
}

/** Replaces a random part of a schema by something that does not belong there. */
function spoil(value: unknown, next: () => number): unknown {
  const junk = [null, -1, 1.5, "", "^(", "#/x", [], {}, [{}], true, false, 1e308, { $ref: "#" }, "\ud800", ["a", 1]];
  if (next() < 0.15 || typeof value !== "object" || value === null) return junk[Math.floor(next() * junk.length)];
  if (Array.isArray(value)) {
    const at = Math.floor(next() * value.length);
    return value.map((item, i) => (i === at ? spoil(item, next) : item));
  }
  const entries = Object.entries(value);
  const at = Math.floor(next() * entries.length);
  return Object.fromEntries(entries.map(([key, item], i) => [key, i === at ? spoil(item, next) : item]));
}

describe("spoilt schemas", () => {
  it("compile or are refused, and never anything else", () => {
    const next = random(7);
    let refused = 0;
    for (let i = 0; i < 2000; i++) {
      const schema = spoil(randomSchema(next, 2), next);
      const before = performance.now();
      try {
        parseGbnf(compileSchema(schema, { whitespace: i % 3 === 0, strict: i % 5 === 0 }).grammar);
      } catch (error) {
        if (!(error instanceof SchemaError)) throw new Error(`crashed on ${JSON.stringify(schema)}`, { cause: error });
        expect(error.status).toBe(400);
        refused++;
      }
      expect(performance.now() - before).toBeLessThan(1000);
    }
    expect(refused).toBeGreaterThan(500);
    expect(refused).toBeLessThan(1900);
  });
});

describe("speed", () => {
  it("compiles an enum of 1,000 values in a few milliseconds", () => {
    const schema = { type: "string", enum: Array.from({ length: 1000 }, (_, i) => `value ${i}`) };
    expect(median(() => compileSchema(schema))).toBeLessThan(20);
  });

  it("compiles 1,000 properties, closed and open, within its deadline", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [`property${i}`, { type: "integer" }]),
    );
    expect(median(() => compileSchema({ type: "object", properties, additionalProperties: false }))).toBeLessThan(1000);
    expect(median(() => compileSchema({ type: "object", properties }))).toBeLessThan(1000);
  });

  it("keeps large counts as counters", () => {
    const { grammar } = compileSchema({
      type: "array",
      items: { type: "string", maxLength: 100_000 },
      maxItems: 50_000,
    });
    expect(grammar.length).toBeLessThan(2000);
    expect(grammar).toContain("{0,100000}");
  });

  it("tells 20 overlapping schemas of a oneOf apart", () => {
    const { grammar } = compileSchema({ oneOf: Array.from({ length: 20 }, (_, i) => ({ required: [`a${i}`] })) });
    expect(accepts(grammar, '{"a3":1}')).toBe(true);
    expect(accepts(grammar, '{"a3":1,"a4":1}')).toBe(false);
  });

  it("counts in blocks what one counter does not hold", () => {
    const { grammar } = compileSchema({ type: "string", pattern: "^a*$", minLength: 2, maxLength: 100_004 });
    for (const [, count] of grammar.matchAll(/(\d+)\}/g)) expect(Number(count)).toBeLessThanOrEqual(100_000);
    const string = (length: number): string => `"${"a".repeat(length)}"`;
    for (const length of [2, 100_001, 100_004]) expect(accepts(grammar, string(length)), `${length}`).toBe(true);
    for (const length of [1, 100_005]) expect(accepts(grammar, string(length)), `${length}`).toBe(false);
  });

  it("takes 60 levels", () => {
    const { grammar } = compileSchema(nest(60, (items) => ({ type: "array", items })));
    expect(accepts(grammar, `${"[".repeat(60)}""${"]".repeat(60)}`)).toBe(true);
  });
});
