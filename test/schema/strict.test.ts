import { describe, expect, it } from "vitest";
import { compileSchema, SchemaError } from "../../src/schema/index.js";
import { accepts } from "../support/gbnf-matcher.js";

type Obj = Record<string, unknown>;

function object(properties: Obj, more: Obj = {}): Obj {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false, ...more };
}

function refusal(schema: unknown): SchemaError {
  try {
    compileSchema(schema, { strict: true });
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  }
  throw new Error("not refused");
}

function nested(levels: number): Obj {
  let schema: Obj = { type: "string" };
  for (let i = 1; i < levels; i++) schema = object({ a: schema });
  return schema;
}

describe("strict", () => {
  it("takes OpenAI's subset", () => {
    const { grammar } = compileSchema(
      object(
        {
          steps: { type: "array", items: { $ref: "#/$defs/step" }, minItems: 1 },
          unit: { type: ["string", "null"], enum: ["F", "C", null], description: "a unit" },
          when: { type: "string", format: "date" },
          next: { anyOf: [{ $ref: "#" }, { type: "null" }] },
        },
        { $defs: { step: object({ n: { type: "number", minimum: 0, multipleOf: 0.5 } }) } },
      ),
      { strict: true },
    );
    expect(accepts(grammar, '{"steps":[{"n":1.5}],"unit":null,"when":"2024-01-31","next":null}')).toBe(true);
    expect(accepts(grammar, '{"steps":[{"n":1.6}],"unit":null,"when":"2024-01-31","next":null}')).toBe(false);
  });

  it.each<[string, unknown, string]>([
    ["root not an object", { type: "array", items: { type: "string" } }, "/type"],
    ["root anyOf", { ...object({}), anyOf: [object({})] }, "/type"],
    ["open object", { type: "object", properties: {} }, "/additionalProperties"],
    ["optional property", object({ a: { type: "string" } }, { required: [] }), "/required"],
    ["required without property", object({}, { required: ["a"] }), "/required"],
    ["allOf", object({ a: { allOf: [{ type: "string" }] } }), "/properties/a/allOf"],
    ["oneOf", object({ a: { oneOf: [{ type: "string" }] } }), "/properties/a/oneOf"],
    ["unknown keyword", object({ a: { type: "string", "x-y": 1 } }), "/properties/a/x-y"],
    ["format", object({ a: { type: "string", format: "uri" } }), "/properties/a/format"],
    [
      "inner open object",
      object({ a: { type: "array", items: { type: "object" } } }),
      "/properties/a/items/additionalProperties",
    ],
    [
      "many enum values",
      object({ a: { enum: Array.from({ length: 1001 }, (_, i) => `v${i}`) } }),
      "/properties/a/enum",
    ],
    [
      "long enum",
      object({ a: { enum: Array.from({ length: 251 }, (_, i) => `${i}`.padEnd(60, "x")) } }),
      "/properties/a/enum",
    ],
    ["too deep", nested(11), "/properties/a".repeat(10)],
  ])("refuses: %s", (_, schema, pointer) => {
    const error = refusal(schema);
    expect(error.pointer).toBe(pointer);
    expect(error.status).toBe(400);
  });

  it("takes ten levels", () => {
    expect(compileSchema(nested(10), { strict: true }).grammar).toContain("root ::=");
  });
});
