import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { harmlessFields, internalFields, pendingFields } from "../../src/openai/fields.js";
import { limits } from "../../src/openai/limits.js";
import { knownFields } from "../../src/openai/request-schema.js";
import { type OptionRow, samplingOptions } from "../../src/options.js";
import { scriptedEngine } from "../../src/testing/index.js";

/** Values of one field: good ones, and bad ones for which the error must name it. */
interface Values {
  good: fc.Arbitrary<unknown>;
  bad: fc.Arbitrary<unknown>;
}

type Type = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

const samples: Record<Exclude<Type, "null">, fc.Arbitrary<unknown>> = {
  boolean: fc.boolean(),
  integer: fc.integer(),
  number: fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }),
  string: fc.string({ maxLength: 8 }),
  array: fc.array(fc.constantFrom({}, "x", 1, null), { maxLength: 3 }),
  object: fc.dictionary(fc.string({ maxLength: 4 }), fc.constantFrom(1, "x", []), { maxKeys: 3 }),
};

/** Values of all other types. An integer is a number, too. */
function otherThan(...types: Type[]): fc.Arbitrary<unknown> {
  const taken = new Set<string>(types.includes("number") ? [...types, "integer"] : types);
  return fc.oneof(...Object.entries(samples).flatMap(([type, values]) => (taken.has(type) ? [] : [values])));
}

function numbers({ type, minimum, exclusiveMinimum, maximum }: OptionRow): Values {
  const least = minimum ?? exclusiveMinimum ?? 0;
  const most = maximum ?? 0;
  const integer = type === "integer";
  const within = integer
    ? fc.integer({ min: Math.max(least, -(2 ** 31)), max: Math.min(most, 2 ** 31 - 1) })
    : fc.double({ min: least, max: most, noNaN: true, minExcluded: exclusiveMinimum !== undefined });
  const beyond = [fc.constantFrom(most + 1, most * 2 + 1, least - 1, 1e300, -1e300)];
  if (exclusiveMinimum !== undefined) beyond.push(fc.constant(exclusiveMinimum));
  return {
    good: fc.oneof(within, fc.constant(most), ...(minimum === undefined ? [] : [fc.constant(minimum)])),
    bad: fc.oneof(...beyond, otherThan(...(integer ? (["integer"] as const) : (["number"] as const)))),
  };
}

const integer = (minimum: number, maximum: number): Values =>
  numbers({ name: "", type: "integer", minimum, maximum, default: 0, description: "" });
const boolean: Values = { good: fc.boolean(), bad: otherThan("boolean") };
const text: Values = { good: fc.string(), bad: otherThan("string") };
const textPart = fc.record({ type: fc.constant("text"), text: fc.string({ maxLength: 20 }) });
const content = fc.oneof(fc.string({ maxLength: 40 }), fc.array(textPart, { minLength: 1, maxLength: 3 }));
const call = fc.record({
  id: fc.string({ minLength: 1, maxLength: 8 }),
  type: fc.constant("function"),
  function: fc.record({ name: fc.string({ minLength: 1, maxLength: 8 }), arguments: fc.constant('{"a":1}') }),
});
const message = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "developer", "user"), content }),
  fc.record({ role: fc.constant("user"), content, name: fc.string() }),
  fc.record({ role: fc.constant("assistant"), content: fc.oneof(content, fc.constant("")) }),
  fc.record({ role: fc.constant("assistant"), tool_calls: fc.array(call, { minLength: 1, maxLength: 2 }) }),
  fc.record({ role: fc.constant("tool"), content, tool_call_id: fc.string({ minLength: 1 }) }),
);
const badMessage = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "developer", "user", "tool") }),
  fc.record({ role: fc.string({ minLength: 12 }), content }),
  fc.record({ content }),
  fc.record({ role: fc.constant("user"), content: otherThan("string", "array") }),
  fc.record({
    role: fc.constant("user"),
    content: fc.constantFrom([], [{ type: "text" }], [{ type: "image_url", image_url: {} }], ["x"], [1]),
  }),
  fc.record({ role: fc.constant("assistant") }),
  fc.record({ role: fc.constant("assistant"), tool_calls: fc.constantFrom([{}], [{ id: "x" }], "x", [1]) }),
  fc.record({ role: fc.constant("tool"), content }),
  fc.record({ role: fc.constant("user"), content, extra: fc.constant(1) }),
  fc.constantFrom(1, "x", [], true),
);
const stop = fc.string({ minLength: 1, maxLength: 8 });
const format = (json_schema: fc.Arbitrary<unknown>) => fc.record({ type: fc.constant("json_schema"), json_schema });
const schema = fc.constantFrom<object>(
  { type: "object" },
  { type: "string" },
  { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: false },
  { enum: ["a", 1, null] },
);
const bias = fc.oneof(fc.double({ min: -100, max: 100, noNaN: true }), fc.constant(false));

/** Every field that a request may have. A field that is not here, or here and not there, fails the test below. */
const fields: Record<string, Values> = {
  ...Object.fromEntries(samplingOptions.map((row) => [row.name, numbers(row)])),
  // Beyond what a double can count, an integer is no longer one.
  seed: { good: fc.maxSafeInteger(), bad: fc.oneof(otherThan("integer"), fc.constantFrom(2 ** 53, 1e300)) },
  messages: {
    good: fc.array(message, { minLength: 1, maxLength: 4 }),
    bad: fc.oneof(
      otherThan("array"),
      fc.constant([]),
      fc.tuple(fc.array(message, { maxLength: 2 }), badMessage).map(([good, bad]) => [...good, bad]),
    ),
  },
  model: text,
  max_tokens: integer(1, 2 ** 31 - 1),
  max_completion_tokens: integer(1, 2 ** 31 - 1),
  n_predict: integer(-1, 2 ** 31 - 1),
  stop: {
    good: fc.oneof(stop, fc.array(stop, { minLength: 1, maxLength: limits.stops })),
    bad: fc.oneof(
      otherThan("string", "array"),
      fc.constantFrom("", [], [""], [1], "x".repeat(limits.stopLength + 1)),
      fc.array(stop, { minLength: limits.stops + 1, maxLength: 8 }),
    ),
  },
  grammar: {
    good: fc.constantFrom('root ::= "a"', 'root ::= [a-z]* | "b"'),
    bad: fc.oneof(otherThan("string"), fc.constantFrom("")),
  },
  response_format: {
    good: fc.oneof(
      fc.constantFrom({ type: "text" }, { type: "json_object" }),
      format(fc.record({ name: fc.constant("x"), schema })),
      format(
        fc.record({ name: fc.constant("x"), schema, strict: fc.constantFrom(false, null), description: fc.string() }),
      ),
    ),
    bad: fc.oneof(
      otherThan("object"),
      fc.constantFrom<object>({}, { type: "xml" }, { type: "json_schema" }, { type: "text", extra: 1 }),
      format(fc.record({ name: fc.constantFrom("", "a b", "é", "x".repeat(65)), schema })),
      format(fc.record({ schema })),
      format(
        fc.record({
          name: fc.constant("x"),
          schema: fc.constantFrom<unknown>(1, "x", { type: "strng" }, { $ref: "#/$defs/no" }),
        }),
      ),
    ),
  },
  grammar_json_functions: {
    good: fc.constantFrom({ oneOf: [{ properties: { function: { const: "f" }, arguments: { type: "object" } } }] }),
    bad: fc.oneof(otherThan("object"), fc.constantFrom<object>({}, { oneOf: [] }, { oneOf: [{}] }, { oneOf: 1 })),
  },
  json_whitespace: {
    good: fc.constantFrom("compact", "model"),
    bad: fc.oneof(fc.string({ minLength: 9 }), otherThan("string")),
  },
  logprobs: boolean,
  top_logprobs: integer(0, limits.logprobs),
  n_probs: integer(0, limits.logprobs),
  n: {
    ...integer(1, limits.choices),
    good: fc.oneof({ weight: 20, arbitrary: fc.integer({ min: 1, max: 3 }) }, fc.constant(limits.choices)),
  },
  prompt_cache_key: {
    good: fc.string(),
    bad: fc.oneof(otherThan("string"), fc.constant("x".repeat(limits.cacheKeyLength + 1))),
  },
  cache_prompt: boolean,
  priority: integer(-(2 ** 31) + 1, 2 ** 31 - 1),
  timeout_ms: integer(0, 2 ** 31 - 1),
  t_max_predict_ms: integer(-1, 2 ** 31 - 1),
  stream: boolean,
  stream_options: {
    good: fc.record({ include_usage: fc.boolean(), include_obfuscation: fc.constant(false) }, { requiredKeys: [] }),
    bad: fc.oneof(
      otherThan("object"),
      fc.constantFrom<object>({ include_usage: 1 }, { other: true }, { include_obfuscation: true }),
    ),
  },
  logit_bias: {
    good: fc.oneof(
      fc.dictionary(fc.nat({ max: 999 }).map(String), bias, { maxKeys: 4 }),
      fc.array(fc.tuple(fc.oneof(fc.nat({ max: 999 }), fc.string({ minLength: 1 })), bias), { maxLength: 4 }),
    ),
    bad: fc.oneof(
      otherThan("object", "array"),
      fc.constantFrom<unknown>(
        { a: 1 },
        { "1": 101 },
        { "1": "x" },
        { "1": true },
        { "1000": 1 },
        { "-1": 1 },
        { "01": 1 },
      ),
      fc.constantFrom<unknown>([1], [[1]], [[1, 101]], [[1.5, 1]], [["", 1]], [[1000, 1]]),
    ),
  },
  ignore_eos: boolean,
  min_tokens: integer(0, 2 ** 31 - 1),
  samplers: {
    good: fc.oneof(
      fc.array(fc.constantFrom("top_k", "typical_p", "typ_p", "temperature", "penalties", "dry", "xtc"), {
        maxLength: 4,
      }),
      fc.stringMatching(/^[edskypmxt]{0,9}$/),
    ),
    bad: fc.oneof(otherThan("string", "array"), fc.constantFrom<unknown>(["topk"], "z", [1], [""], "t".repeat(33))),
  },
  dry_sequence_breakers: {
    good: fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 4 }),
    bad: fc.oneof(otherThan("array"), fc.constantFrom<unknown>([""], [1], ["x".repeat(41)], Array(33).fill("x"))),
  },
};

const values: Record<string, Values> = {
  ...Object.fromEntries([...harmlessFields, ...pendingFields].map(({ name }) => [name, passive(name)])),
  ...fields,
};

/** Of the fields that are only judged, what their tables say. */
function passive(name: string): Values {
  const pending = pendingFields.find((field) => field.name === name);
  const schema = [...pendingFields, ...harmlessFields].find((field) => field.name === name)?.schema ?? {};
  const accepted = (value: unknown) =>
    value === null ||
    (hasType(value, schema.type) &&
      (schema.enum?.includes(String(value)) ?? true) &&
      (pending?.neutral(value) ?? true));
  const tried = [null, [], [1], ["text"], "none", "auto", "medium", "high", true, false, 0, 5, {}, { type: "x" }];
  return {
    good: fc.constantFrom(...tried.filter(accepted)),
    bad: fc.constantFrom(...tried.filter((value) => !accepted(value))),
  };
}

function hasType(
  value: unknown,
  type: string | readonly string[] = ["boolean", "number", "string", "array", "object"],
): boolean {
  const actual = Array.isArray(value) ? "array" : typeof value;
  return [type].flat().some((each) => each === actual || (each === "integer" && Number.isInteger(value)));
}

const names = Object.keys(values).filter((name) => name !== "messages");

const chosenNames = fc.subarray(names, { maxLength: 8 });
const wrongName = fc.option(fc.constantFrom(...Object.keys(values)), { freq: 2 });

/** A good body, and sometimes one field in it that is not. */
function nearlyValid(draw: fc.GeneratorValue): { body: Record<string, unknown>; wrong: string | null } {
  const wrong = draw(() => wrongName);
  const body: Record<string, unknown> = {};
  for (const name of ["messages", ...draw(() => chosenNames)]) {
    const { good } = values[name] ?? text;
    body[name] = draw(() => good);
  }
  const { bad } = values[wrong ?? ""] ?? text;
  if (wrong !== null) body[wrong] = draw(() => bad);
  return { body: consistent(body, wrong), wrong };
}

/** Takes out what belongs together and is not: which field is named then is a matter of taste. */
function consistent(body: Record<string, unknown>, wrong: string | null): Record<string, unknown> {
  const without = (...dropped: string[]) => {
    for (const name of dropped) if (name !== wrong) delete body[name];
  };
  // null is as good as absent.
  for (const [name, value] of Object.entries(body)) if (value === null) without(name);
  const shapes = ["response_format", "grammar_json_functions", "grammar"].filter((name) => name in body);
  const kept = wrong !== null && shapes.includes(wrong) ? wrong : shapes[0];
  without(...shapes.filter((name) => name !== kept));
  if (kept !== "grammar_json_functions" && !(kept === "response_format" && isJson(body[kept])))
    without("json_whitespace");
  if ("stream_options" in body && wrong !== "stream") body.stream = true;
  if (wrong === "stream") without("stream_options");
  if ("top_logprobs" in body && wrong !== "logprobs") body.logprobs = true;
  if (body.logprobs === false) without("n_probs");
  return body;
}

const isJson = (format: unknown) => (format as { type?: string } | null)?.type?.startsWith("json") === true;

describe("request fields", () => {
  it("are all tried", () => {
    expect(Object.keys(values).sort()).toEqual([...knownFields].sort());
  });
});

describe("50,000 nearly valid bodies", () => {
  it("are answered with 200, or with a 400 that names the field that is wrong", async () => {
    const { engine } = await scriptedEngine({ script: { pieces: ["{}"] } });
    const seen = { good: 0, bad: 0 };
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (draw) => {
        const { body, wrong } = nearlyValid(draw);
        const response = await engine.fetch("http://local/v1/chat/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        const answer = await response.text();
        if (wrong === null || !(wrong in body)) {
          seen.good++;
          if (response.status !== 200) throw new Error(`${response.status}: ${answer}`);
          return;
        }
        seen.bad++;
        const { error } = JSON.parse(answer) as {
          error?: { param: string; type: string; code: string; message: string };
        };
        if (response.status !== 400 || error?.type !== "invalid_request_error" || error.param !== wrong) {
          throw new Error(`${response.status} for a wrong '${wrong}': ${answer.slice(0, 300)}`);
        }
      }),
      { numRuns: 50_000, seed: 7, endOnFailure: false },
    );
    expect(seen.good).toBeGreaterThan(10_000);
    expect(seen.bad).toBeGreaterThan(10_000);
    await engine.close();
  }, 300_000);

  it("and internal fields are refused, whatever is in them", async () => {
    const { engine } = await scriptedEngine();
    for (const name of internalFields) {
      const body = { messages: [{ role: "user", content: "hi" }], [name]: null };
      const response = await engine.fetch("http://local/v1/chat/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect([response.status, ((await response.json()) as { error: { param: string } }).error.param]).toEqual([
        400,
        name,
      ]);
    }
    await engine.close();
  });
});
