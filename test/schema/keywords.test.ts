import { describe, expect, it } from "vitest";
import { compileSchema, SchemaError } from "../../src/schema/index.js";
import { accepts } from "../support/gbnf-matcher.js";

/** A schema with texts that its grammar must take and texts that it must not. */
type Case = [name: string, schema: unknown, good: string[], bad: string[]];

const string = { type: "string" };
const closed = { type: "object", additionalProperties: false };

const cases: Case[] = [
  ["true", true, ["1", '{"a":[null]}', '"x"', "-0.5e3"], ["", "01", "{a:1}", "1."]],
  ["type list", { type: ["integer", "null"] }, ["0", "-7", "null"], ["1.5", "-0", "+1", '"1"']],
  ["nullable", { type: "string", nullable: true, enum: ["a"] }, ['"a"', "null"], ['"b"', "1"]],
  ["enum and bounds", { enum: [1, 2, "x", null], minimum: 2 }, ["2", '"x"', "null"], ["1", "3"]],
  ["enum of objects", { enum: [{ a: [1, { b: null }] }] }, ['{"a":[1,{"b":null}]}'], ['{"a":[1]}']],
  ["const beside type", { const: "é\n\u0001", type: "string" }, ['"é\\n\\u0001"'], ['"é"']],
  [
    "lengths",
    { type: "string", minLength: 2, maxLength: 3 },
    ['"ab"', '"😀\\ud83d\\ude00x"'],
    ['"a"', '"abcd"', '"\\ud83d\\ude00"'],
  ],
  ["large lengths", { type: "string", minLength: 1, maxLength: 100000 }, ['"a"'], ['""']],
  [
    "pattern contains",
    { type: "string", pattern: "b+" },
    ['"b"', '"abbc"', '"\\u0061b"'.replace("\\u0061", "a")],
    ['"ac"', '""'],
  ],
  ["pattern anchored", { type: "string", pattern: "^\\d{3}-[A-Z]$" }, ['"123-A"'], ['"123-AB"', '"12-A"', '"x123-A"']],
  ["pattern halves", { type: "string", pattern: "^a|b$" }, ['"a"', '"ax"', '"xb"'], ['"xa"', '"bx"']],
  [
    "pattern escapes",
    { type: "string", pattern: '^["\\\\/\\t]$' },
    ['"\\""', '"\\\\"', '"/"', '"\\t"'],
    ['"\\/"', '"\\u0009"', '"a"'],
  ],
  [
    "pattern and lengths",
    { type: "string", pattern: "^[a-z]+$", maxLength: 3, minLength: 2 },
    ['"ab"', '"abc"'],
    ['"a"', '"abcd"'],
  ],
  [
    "pattern and bounds by states",
    { type: "string", pattern: "^(ab)+$", maxLength: 5 },
    ['"ab"', '"abab"'],
    ['"ababab"', '"aba"'],
  ],
  [
    "pattern with a large count",
    { type: "string", pattern: "^[a-f]{2,5000}$" },
    ['"ab"', `"${"a".repeat(300)}"`],
    ['"a"', '"ag"'],
  ],
  [
    "a prefix and a large length",
    { type: "string", pattern: "^https?://", maxLength: 2048, minLength: 10 },
    ['"http://abc"', '"https://ab"', '"https://a\\u00e9"', `"http://${"x".repeat(2041)}"`],
    ['"http://ab"', '"ftp://abcdef"', `"http://${"x".repeat(2042)}"`],
  ],
  [
    "two patterns",
    { allOf: [{ pattern: "^a" }, { pattern: "z$" }], type: "string" },
    ['"az"', '"a1z"'],
    ['"a"', '"z"'],
  ],
  ["pattern of code points", { type: "string", pattern: "^.$" }, ['"😀"', '"é"'], ['"\\n"', '"ab"']],
  [
    "Unicode property",
    { type: "string", pattern: "^\\p{Lu}\\P{L}[\\p{Script=Greek}]$" },
    ['"É1α"', '"𝐀😀ω"'],
    ['"é1α"', '"ÉxΑ"', '"É1a"'],
  ],
  ["not pattern", { type: "string", not: { pattern: "^a" } }, ['""', '"b"'], ['"a"', '"ab"']],
  [
    "date",
    { type: "string", format: "date" },
    ['"2024-02-29"', '"2000-02-29"', '"1999-12-31"'],
    ['"2023-02-29"', '"1900-02-29"', '"2024-13-01"', '"2024-04-31"'],
  ],
  [
    "date-time",
    { type: "string", format: "date-time" },
    ['"2024-02-29T23:59:59.5Z"', '"2016-12-31T23:59:60Z"', '"2024-01-01T00:00:00+02:30"'],
    ['"2024-01-01 00:00:00Z"', '"2024-01-01T24:00:00Z"'],
  ],
  [
    "duration",
    { type: "string", format: "duration" },
    ['"P1Y2M3DT4H5M6S"', '"PT36H"', '"P4W"'],
    ['"P"', '"P1YT"', '"1D"'],
  ],
  ["email", { type: "string", format: "email" }, ['"joe.b@example.org"'], ['"joe"', '"a@b"', '"@x.org"']],
  [
    "hostname",
    { type: "string", format: "hostname" },
    ['"a"', '"www.example.org"'],
    ['"-a"', '"a-"', '"a_b"', '"a..b"'],
  ],
  ["ipv4", { type: "string", format: "ipv4" }, ['"192.168.0.255"'], ['"256.1.1.1"', '"01.1.1.1"', '"1.1.1"']],
  [
    "ipv6",
    { type: "string", format: "ipv6" },
    ['"::"', '"::1"', '"1:2:3:4:5:6:7:8"', '"fe80::1:2"', '"1::7:8"', '"::ffff:1.2.3.4"', '"1:2:3:4:5:6:7::"'],
    ['"1:2:3:4:5:6:7"', '"1::2::3"', '":1"', '"1:2:3:4:5:6:7:8::"', '"12345::"'],
  ],
  [
    "uri",
    { type: "string", format: "uri" },
    ['"https://a.example:80/b/c?d=e#f"', '"mailto:x@y.z"', '"urn:a:b"'],
    ['"/a/b"', '"http://a b"', '"a"'],
  ],
  [
    "uri-reference",
    { type: "string", format: "uri-reference" },
    ['"/a/b"', '"a?b"', '"https://x.example"', '""'],
    ['"a b"', '"%zz"'],
  ],
  [
    "uuid",
    { type: "string", format: "uuid" },
    ['"2eb8aa08-aa98-11ea-b4aa-73b441d16380"'],
    ['"2eb8aa08aa9811eab4aa73b441d16380"'],
  ],
  ["json-pointer", { type: "string", format: "json-pointer" }, ['""', '"/a~0~1/b"'], ['"a"', '"/~2"']],
  ["regex", { type: "string", format: "regex" }, ['"^a+(b|c)*$"', '"[a-z]\\\\d"'], ['"(a"', '"*"', '"[z-a]"']],
  [
    "minimum",
    { type: "integer", minimum: -12, maximum: 105 },
    ["-12", "-1", "0", "9", "105", "99"],
    ["-13", "106", "1000", "-100", "00"],
  ],
  ["exclusive", { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 10 }, ["1", "9"], ["0", "10"]],
  ["draft 4 exclusive", { type: "integer", minimum: 3, exclusiveMinimum: true }, ["4", "30"], ["3", "2"]],
  [
    "decimal bounds",
    { type: "number", minimum: 1.25, exclusiveMaximum: 3 },
    ["1.25", "1.250", "2", "2.999", "1.3"],
    ["1.2", "1.2499", "3", "3.0", "3.00", "1"],
  ],
  [
    "negative decimals",
    { type: "number", maximum: -0.5 },
    ["-0.5", "-0.51", "-1", "-10.0"],
    ["-0.4", "0", "-0.49", "1"],
  ],
  ["zero", { type: "number", minimum: 0 }, ["0", "0.0", "-0.0", "5"], ["-0.1", "-1"]],
  ["fractional bounds of integers", { type: "integer", minimum: 1.5, maximum: 3.5 }, ["2", "3"], ["1", "4"]],
  ["multipleOf", { type: "integer", multipleOf: 7, minimum: 0 }, ["0", "7", "14", "700"], ["1", "13", "-7"]],
  [
    "multipleOf below a huge bound",
    { type: "integer", multipleOf: 7, maximum: 1e300, minimum: -1e20 },
    ["14", "-7"],
    ["1"],
  ],
  ["multipleOf 0.01", { type: "number", multipleOf: 0.01 }, ["1", "1.5", "1.25", "1.250"], ["1.255"]],
  ["multipleOf 2.5", { type: "number", multipleOf: 2.5 }, ["0", "2.5", "5", "-7.50"], ["1", "2.55", "3.5"]],
  ["int32", { type: "integer", format: "int32" }, ["2147483647", "-2147483648"], ["2147483648"]],
  [
    "properties in order",
    { ...closed, properties: { b: string, a: { type: "null" } }, required: ["a"] },
    ['{"a":null}', '{"b":"","a":null}'],
    ["{}", '{"a":null,"b":""}', '{"b":""}'],
  ],
  [
    "open object",
    { type: "object", properties: { foo: { type: "integer" } } },
    ["{}", '{"foo":1,"bar":[]}', '{"fo":1,"fooo":2}', '{"":1}'],
    ['{"foo":""}', '{"x":1,"foo":""}', '{"\\u0066oo":""}'],
  ],
  [
    "additional schema",
    { type: "object", additionalProperties: { type: "boolean" } },
    ["{}", '{"a":true,"b":false}'],
    ['{"a":1}'],
  ],
  ["required without properties", { type: "object", required: ["x", "y"] }, ['{"x":1,"y":2,"z":3}'], ['{"x":1}', "{}"]],
  [
    "patternProperties",
    { ...closed, patternProperties: { "^n_": { type: "integer" }, s$: { minimum: 5 } } },
    ['{"n_a":1}', '{"ns":7}', '{"n_s":6}'],
    ['{"n_s":1}', '{"x":1}', '{"n_a":""}'],
  ],
  [
    "propertyNames",
    { type: "object", propertyNames: { pattern: "^[a-z]+$" } },
    ["{}", '{"ab":1}'],
    ['{"A":1}', '{"":1}'],
  ],
  ["maxProperties", { type: "object", maxProperties: 1 }, ["{}", '{"a":1}'], ['{"a":1,"b":2}']],
  [
    "minProperties",
    { ...closed, properties: { a: true, b: true, c: true }, minProperties: 2 },
    ['{"a":1,"c":1}', '{"a":1,"b":1,"c":1}'],
    ["{}", '{"b":1}'],
  ],
  [
    "dependentRequired",
    { ...closed, properties: { a: true, b: true }, dependentRequired: { a: ["b"] } },
    ["{}", '{"b":1}', '{"a":1,"b":1}'],
    ['{"a":1}'],
  ],
  [
    "items",
    { type: "array", items: { type: "integer" }, minItems: 1, maxItems: 3 },
    ["[1]", "[1,2,3]"],
    ["[]", "[1,2,3,4]", '["a"]'],
  ],
  ["large counts", { type: "array", items: { type: "null" }, maxItems: 50000 }, ["[]", "[null,null]"], ["[1]"]],
  [
    "prefixItems",
    { type: "array", prefixItems: [string, { type: "null" }], items: false, minItems: 1 },
    ['["a"]', '["a",null]'],
    ["[]", '["a",null,1]', "[null]"],
  ],
  [
    "draft-07 tuple",
    { type: "array", items: [string], additionalItems: { type: "null" } },
    ["[]", '["a",null]'],
    ['["a",1]', "[1]"],
  ],
  [
    "uniqueItems",
    { type: "array", items: { enum: ["a", "b", "c"] }, uniqueItems: true, minItems: 2 },
    ['["c","a"]', '["a","b","c"]'],
    ['["a","a"]', '["a"]'],
  ],
  [
    "contains",
    { type: "array", items: { type: "integer" }, contains: { minimum: 5 } },
    ["[5]", "[1,7,2]"],
    ["[]", "[1,2]"],
  ],
  ["not", { not: { type: ["object", "array"] } }, ["1", '"a"', "null"], ["{}", "[]"]],
  ["not const", { type: "integer", not: { const: 5 } }, ["4", "6", "55"], ["5"]],
  [
    "if",
    {
      type: "object",
      properties: { k: { enum: ["a", "b"] }, v: true },
      required: ["k", "v"],
      additionalProperties: false,
      if: { properties: { k: { const: "a" } } },
      // biome-ignore lint/suspicious/noThenProperty: JSON Schema's own keyword
      then: { properties: { v: { type: "integer" } } },
      else: { properties: { v: string } },
    },
    ['{"k":"a","v":1}', '{"k":"b","v":"x"}'],
    ['{"k":"a","v":"x"}', '{"k":"b","v":1}'],
  ],
  [
    "anyOf with siblings",
    { type: "integer", anyOf: [{ maximum: 3 }, { minimum: 10 }], minimum: 0 },
    ["3", "10"],
    ["4", "-1"],
  ],
  ["oneOf overlapping", { type: "integer", oneOf: [{ minimum: 2 }, { maximum: 5 }] }, ["1", "6"], ["2", "5"]],
  [
    "oneOf discriminated",
    {
      oneOf: ["a", "b"].map((k) => ({
        ...closed,
        properties: { kind: { const: k }, [k]: string },
        required: ["kind"],
      })),
    },
    ['{"kind":"a","a":""}', '{"kind":"b"}'],
    ['{"kind":"a","b":""}', '{"kind":"c"}'],
  ],
  ["$ref with siblings", { $defs: { n: { type: "integer" } }, $ref: "#/$defs/n", minimum: 3 }, ["3"], ["2", "3.5"]],
  ["escaped $ref", { $defs: { "a/b~c d": string }, $ref: "#/$defs/a~1b~0c%20d" }, ['"x"'], ["1"]],
  [
    "$id and $anchor",
    {
      $id: "https://example.org/root.json",
      items: { anyOf: [{ $ref: "item.json" }, { $ref: "#here" }, { $ref: "https://example.org/root.json#/$defs/c" }] },
      type: "array",
      $defs: {
        a: { $id: "item.json", $defs: { inner: { type: "null" } }, $ref: "#/$defs/inner" },
        b: { $anchor: "here", type: "integer" },
        c: { const: "c" },
      },
    },
    ['[null,1,"c"]'],
    ['["d"]', "[1.5]"],
  ],
  [
    "recursive",
    {
      $defs: {
        t: {
          ...closed,
          properties: { v: { type: "integer" }, next: { anyOf: [{ $ref: "#/$defs/t" }, { type: "null" }] } },
          required: ["v", "next"],
        },
      },
      $ref: "#/$defs/t",
    },
    ['{"v":1,"next":{"v":2,"next":null}}'],
    ['{"v":1}', '{"v":1,"next":{}}'],
  ],
  [
    "allOf closes",
    { allOf: [{ ...closed, properties: { a: string } }, { properties: { a: { minLength: 2 } } }] },
    ["{}", '{"a":"xx"}'],
    ['{"a":"x"}', '{"b":1}'],
  ],
];

describe("keywords", () => {
  it.each(cases)("%s", (_, schema, good, bad) => {
    const { grammar } = compileSchema(schema);
    for (const text of good) expect(accepts(grammar, text), `refused ${text}\n${grammar}`).toBe(true);
    for (const text of bad) expect(accepts(grammar, text), `accepted ${text}\n${grammar}`).toBe(false);
  });
});

describe("white space", () => {
  it("is taken when asked for, within bounds", () => {
    const { grammar } = compileSchema({ type: "array", items: { type: "object" } }, { whitespace: true });
    expect(accepts(grammar, '[ {"a": 1,\n  "b" : 2} ]'.replace(" :", ":"))).toBe(true);
    expect(accepts(grammar, `[${" ".repeat(100)}]`)).toBe(false);
  });
});

const refused: [name: string, schema: unknown, code: string, pointer: string][] = [
  ["unknown type", { properties: { a: { type: "strng" } } }, "invalid_schema", "/properties/a/type"],
  ["no schema", 7, "invalid_schema", ""],
  ["a list as schema", { items: 3 }, "invalid_schema", "/items"],
  ["bad pattern", { pattern: "^?[0-9]$" }, "invalid_schema", "/pattern"],
  ["look-ahead", { properties: { p: { pattern: "^(?=a)b$" } } }, "unsupported_schema", "/properties/p/pattern"],
  ["back-reference", { pattern: "(a)\\1" }, "unsupported_schema", "/pattern"],
  ["unknown property", { pattern: "\\p{Nope}" }, "invalid_schema", "/pattern"],
  ["unknown format", { format: "idn-email" }, "unsupported_schema", "/format"],
  ["negative length", { minLength: -1 }, "invalid_schema", "/minLength"],
  ["uniqueItems", { type: "array", uniqueItems: true }, "unsupported_schema", "/uniqueItems"],
  [
    "unevaluatedProperties",
    { allOf: [{}], unevaluatedProperties: false },
    "unsupported_schema",
    "/unevaluatedProperties",
  ],
  ["minProperties", { type: "object", minProperties: 3 }, "unsupported_schema", "/minProperties"],
  ["remote $ref", { $ref: "https://example.org/s" }, "unsupported_schema", "/$ref"],
  ["missing $ref", { $ref: "#/$defs/x" }, "invalid_schema", "/$ref"],
  ["$dynamicRef", { $dynamicRef: "#x" }, "unsupported_schema", "/$dynamicRef"],
  ["nothing left", { type: "integer", minimum: 5, maximum: 3 }, "invalid_schema", ""],
  ["nothing between", { type: "integer", exclusiveMinimum: 1, exclusiveMaximum: 2 }, "invalid_schema", ""],
  ["no end", { type: "object", required: ["a"], properties: { a: { $ref: "#" } } }, "invalid_schema", ""],
  ["empty enum", { enum: [] }, "invalid_schema", "/enum"],
  [
    "oneOf that cannot be told apart",
    { oneOf: [{ items: string, prefixItems: [{}] }, { uniqueItems: true }] },
    "unsupported_schema",
    "/oneOf",
  ],
];

describe("refusals", () => {
  it.each(refused)("%s", (_, schema, code, pointer) => {
    let error: unknown;
    try {
      compileSchema(schema);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(SchemaError);
    expect(error).toMatchObject({ code, pointer, status: 400 });
  });
});
