import { describe, expect, it } from "vitest";
import { BadRequestError } from "../../src/errors.js";
import { validateRequest } from "../../src/openai/validate.js";
import { compileSchema } from "../../src/schema/index.js";
import { accepts } from "../support/gbnf-matcher.js";

const messages = [{ role: "user", content: "x" }];
const formatOf = (fields: object) => validateRequest({ messages, ...fields }).jsonFormat;
function refused(fields: object): BadRequestError {
  try {
    formatOf(fields);
  } catch (error) {
    if (error instanceof BadRequestError) return error;
    throw error;
  }
  throw new Error(`accepted: ${JSON.stringify(fields)}`);
}
/** Whether the answer may be this text. */
function allows(fields: object, text: string): boolean {
  const format = formatOf(fields);
  if (format === undefined) throw new Error("no JSON is asked for");
  const { schema, ...options } = format;
  return accepts(compileSchema(schema, options).grammar, text);
}

const call = (name: string, parameters: object) => ({
  type: "object",
  properties: {
    function: { const: name },
    arguments: { type: "object", properties: parameters, additionalProperties: false },
  },
});
const functions = {
  oneOf: [
    call("weather", { city: { $ref: "#/$defs/city" }, days: { type: "integer" } }),
    call("time", { zone: { const: null } }),
  ],
  $defs: { city: { enum: ["Rome", "Paris"] } },
};

describe("grammar_json_functions", () => {
  it("is one of the functions, with all properties of the call and no others", () => {
    const fields = { grammar_json_functions: functions };
    expect(formatOf(fields)).toMatchObject({ param: "grammar_json_functions", whitespace: false });
    for (const list of ["oneOf", "anyOf"]) {
      const { oneOf, ...rest } = functions;
      const given = { grammar_json_functions: { [list]: oneOf, ...rest } };
      expect(allows(given, '{"function":"weather","arguments":{"city":"Rome"}}')).toBe(true);
      expect(allows(given, '{"function":"weather","arguments":{"city":"Rome","days":3}}')).toBe(true);
      expect(allows(given, '{"function":"time","arguments":{"zone":null}}')).toBe(true);
      expect(allows(given, '{"function":"time","arguments":{"zone":1}}')).toBe(false);
      expect(allows(given, '{"function":"time","arguments":{"city":"Rome"}}')).toBe(false);
      expect(allows(given, '{"function":"time"}')).toBe(false);
      expect(allows(given, '{"function":"time","arguments":{},"more":1}')).toBe(false);
      expect(allows(given, "{}")).toBe(false);
    }
  });

  it("leaves alone what a function says of its own properties", () => {
    const oneOf = [{ ...call("f", {}), required: ["function"] }];
    expect(allows({ grammar_json_functions: { oneOf } }, '{"function":"f"}')).toBe(true);
  });

  it("null is none", () => {
    expect(formatOf({ grammar_json_functions: null, json_whitespace: null, response_format: null })).toBeUndefined();
  });

  it.each([
    "x",
    [],
    {},
    { oneOf: [] },
    { oneOf: {} },
    { oneOf: [1] },
    { oneOf: [{}] },
    { oneOf: [{ type: "string", properties: {} }] },
    { oneOf: [call("f", {})], anyOf: [call("f", {})] },
    { oneOf: [call("f", {})], other: 1 },
    { oneOf: [call("f", {})], $defs: [] },
    { oneOf: Array.from({ length: 129 }, (_, i) => call(`f${i}`, {})) },
  ])("refuses %j", (grammar_json_functions) => {
    expect(refused({ grammar_json_functions })).toMatchObject({ param: "grammar_json_functions", status: 400 });
  });
});

describe("two fields that each say what the whole answer is", () => {
  const json = { type: "json_object" };
  it.each([
    [{ response_format: json, grammar: 'root ::= "a"' }, "response_format"],
    [{ response_format: json, grammar_json_functions: functions }, "response_format"],
    [{ grammar_json_functions: functions, grammar: 'root ::= "a"' }, "grammar_json_functions"],
    [{ response_format: json, grammar_json_functions: functions, grammar: 'root ::= "a"' }, "response_format"],
  ])("%j", (fields, param) => {
    expect(refused(fields)).toMatchObject({ param, status: 400, message: expect.stringContaining("exclude") });
  });

  it("text is none of them", () => {
    const text = { response_format: { type: "text" } };
    expect(formatOf({ ...text, grammar: 'root ::= "a"' })).toBeUndefined();
    expect(formatOf({ ...text, grammar_json_functions: functions })).toBeDefined();
  });
});

describe("json_whitespace", () => {
  const schema = { type: "object", properties: { a: { const: 1 } }, additionalProperties: false };
  const response_format = { type: "json_schema", json_schema: { name: "x", schema } };

  it("compact, which is the default: none; model: where JSON has it", () => {
    for (const fields of [{}, { json_whitespace: null }, { json_whitespace: "compact" }]) {
      expect(allows({ response_format, ...fields }, '{"a":1}')).toBe(true);
      expect(allows({ response_format, ...fields }, '{ "a": 1 }')).toBe(false);
    }
    const loose = { response_format, json_whitespace: "model" };
    for (const text of ['{"a":1}', '{ "a": 1 }', '{\n  "a": 1\n}']) expect(allows(loose, text)).toBe(true);
    expect(allows({ grammar_json_functions: functions, json_whitespace: "model" }, '{ "function": "time" }')).toBe(
      false,
    );
  });

  it("is refused where there is no JSON, and in any other value", () => {
    for (const fields of [{}, { grammar: 'root ::= "a"' }, { response_format: { type: "text" } }]) {
      expect(refused({ ...fields, json_whitespace: "model" })).toMatchObject({ param: "json_whitespace", status: 400 });
    }
    for (const json_whitespace of ["none", true, 1, {}]) {
      expect(refused({ response_format, json_whitespace })).toMatchObject({ param: "json_whitespace", status: 400 });
    }
  });
});
