// Schemas for the bench of grammars, with texts that they allow.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const words = "the quick brown fox jumps over the lazy dog while Zoë counts 12 sheep 😀 in 日本, ";
const names = Array.from({ length: 30 }, (_, i) => `field_${i}`);
const object = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const filled = (value) => Object.fromEntries(names.map((name) => [name, value]));

/** @type {{ name: string, schema: unknown, values: unknown[] }[]} */
export const ownSchemas = [
  { name: "any JSON", schema: {}, values: [names.map((name) => ({ [name]: words, n: 123456, deep: [[true, null]] }))] },
  { name: "30 strings", schema: object(filled({ type: "string" })), values: [filled(words)] },
  {
    name: "30 strings of 10 to 120 characters",
    schema: object(filled({ type: "string", minLength: 10, maxLength: 120 })),
    values: [filled(words)],
  },
  {
    name: "array of 1 to 50 strings of up to 100",
    schema: { type: "array", minItems: 1, maxItems: 50, items: { type: "string", maxLength: 100 } },
    values: [Array.from({ length: 20 }, () => words)],
  },
  { name: "a string of up to 100,000", schema: { type: "string", maxLength: 100_000 }, values: [words.repeat(40)] },
  {
    name: "an enum of 1,000",
    schema: { type: "array", items: { enum: Array.from({ length: 1000 }, (_, i) => `value_${i * 7919}`) } },
    values: [Array.from({ length: 20 }, (_, i) => `value_${i * 37 * 7919}`)],
  },
  {
    name: "a pattern of words",
    schema: { type: "string", pattern: "^([a-zA-Z]+[,.]? )+$" },
    values: ["the quick brown fox jumps over the lazy dog, again and again. ".repeat(8)],
  },
  {
    name: "dates and uuids",
    schema: {
      type: "array",
      items: object({ d: { type: "string", format: "date" }, u: { type: "string", format: "uuid" } }),
    },
    values: [Array.from({ length: 10 }, () => ({ d: "2026-12-01", u: "01234567-89ab-cdef-0123-456789abcdef" }))],
  },
];

/** The rows of ../shared/cases/schemas.jsonl, where it is there. */
export function sharedSchemas() {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const folder = [process.env.TOKENLOOP_SHARED, join(root, "..", "shared")].find(
    (path) => path !== undefined && existsSync(join(path, "cases", "schemas.jsonl")),
  );
  if (folder === undefined) {
    console.warn("SKIPPED: no shared cases found; set TOKENLOOP_SHARED to the folder that holds cases/.\n");
    return [];
  }
  return readFileSync(join(folder, "cases", "schemas.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .map(({ id, schema, valid, valid_in_schema_order = [] }) => ({
      name: id,
      schema,
      values: [...valid_in_schema_order, ...valid],
    }));
}

const endless = (items) => ({ type: "array", items, minItems: 100 });
const string = { type: "string" };
/** Eight that no answer comes to the end of, in what llama.cpp's converter takes too. */
export const endlessSchemas = [
  object({ name: string, age: { type: "integer" } }),
  object({
    tags: { type: "array", items: { enum: ["red", "green", "blue"] } },
    title: { type: "string", maxLength: 40 },
  }),
  object({ code: { type: "string", pattern: "^[A-Z]{3}-[0-9]{4}$" }, at: { type: "string", format: "date" } }),
  object({ a: { type: "number" }, b: { type: "boolean" }, c: { anyOf: [{ type: "null" }, string] } }),
  object({ inner: object({ left: { type: "string", maxLength: 20 }, right: { type: "string", maxLength: 20 } }) }),
  object({ text: { type: "string", minLength: 10, maxLength: 120 } }),
  { anyOf: [object({ x: { type: "integer" } }), object({ y: { type: "string", maxLength: 8 } })] },
  string,
].map(endless);
