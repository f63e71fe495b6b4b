import { describe, expect, it } from "vitest";
import { BadRequestError } from "../../src/errors.js";
import { harmlessFields, pendingFields } from "../../src/openai/fields.js";
import { limits } from "../../src/openai/limits.js";
import { toNativeRequest } from "../../src/openai/map.js";
import { type ValidRequest, validateRequest } from "../../src/openai/validate.js";
import { type OptionRow, samplingOptions } from "../../src/options.js";

const user = { role: "user", content: "hi" };

function valid(fields: object = {}): ValidRequest {
  return validateRequest({ messages: [user], ...fields });
}

function refused(fields: unknown): BadRequestError {
  try {
    validateRequest(typeof fields === "object" && fields !== null ? { messages: [user], ...fields } : fields);
  } catch (error) {
    if (error instanceof BadRequestError) return error;
    throw error;
  }
  throw new Error(`accepted: ${JSON.stringify(fields)}`);
}

function nested(depth: number): unknown {
  let value: unknown = "x";
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

describe("body", () => {
  it.each([null, undefined, 1, "x", [], [user]])("must be an object: %j", (body) => {
    expect(() => validateRequest(body)).toThrow(BadRequestError);
  });

  it("refuses unknown fields and says what was meant", () => {
    expect(refused({ max_token: 1 })).toMatchObject({ code: "unknown_parameter", param: "max_token", status: 400 });
    expect(refused({ max_token: 1 }).message).toContain("'max_tokens'");
    expect(refused({ maxTokens: 1 }).message).toContain("'max_tokens'");
    expect(refused({ topK: 1 }).message).toContain("'top_k'");
    expect(refused({ some_future_field: 1 }).message).not.toContain("Did you mean");
    expect(refused({ json_schema: {} })).toMatchObject({ param: "json_schema" });
    expect(refused({ ["x".repeat(10_000)]: 1 }).message.length).toBeLessThan(200);
  });

  it("takes null as absent, everywhere", () => {
    const fields = [...samplingOptions, ...pendingFields, ...harmlessFields].map(({ name }) => [name, null]);
    const own = ["model", "max_tokens", "max_completion_tokens", "stop", "stream", "stream_options", "logit_bias"];
    expect(valid(Object.fromEntries([...fields, ...own.map((name) => [name, null])]))).toEqual(valid());
    expect(valid({ stream: true, stream_options: { include_usage: null } }).includeUsage).toBe(false);
  });

  it("is not confused by inherited or odd keys", () => {
    const inherited: object = Object.create({ temperature: 99, stream: true });
    expect(validateRequest(Object.assign(inherited, { messages: [user] })).stream).toBe(false);
    for (const key of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      const body: unknown = JSON.parse(`{"messages":[{"role":"user","content":"hi"}],"${key}":{"stream":true}}`);
      expect(() => validateRequest(body)).toThrow(expect.objectContaining({ code: "unknown_parameter", param: key }));
      const message: unknown = JSON.parse(`{"messages":[{"role":"user","content":"hi","${key}":{"x":1}}]}`);
      expect(() => validateRequest(message)).toThrow(expect.objectContaining({ param: "messages" }));
    }
    // A message's content must be its own, not its prototype's.
    const message: object = Object.assign(Object.create({ content: "inherited" }), { role: "user" });
    expect(refused({ messages: [message] })).toMatchObject({ param: "messages" });
  });

  it("bounds nesting and size, naming the field", () => {
    expect(refused({ metadata: { a: nested(limits.depth) } })).toMatchObject({ param: "metadata", status: 400 });
    expect(valid({ metadata: { a: nested(limits.depth - 2) } })).toBeDefined();
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(refused({ tools: cycle })).toMatchObject({ param: "tools" });
    // Doubling by reference: 2^60 values in 60 objects.
    let shared: unknown = [1];
    for (let i = 0; i < 60; i++) shared = [shared, shared];
    expect(refused({ metadata: { shared } })).toMatchObject({ param: "metadata" });
  });
});

describe("sampling options", () => {
  it.each(samplingOptions.map((row): [string, OptionRow] => [row.name, row]))("%s keeps to its row", (name, row) => {
    const { minimum, exclusiveMinimum, maximum } = row;
    const step = row.type === "integer" ? 1 : 0.01;
    const bad: unknown[] = ["1", true, {}, [], Number.NaN, Infinity, -Infinity];
    if (minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER) bad.push(minimum - step);
    if (exclusiveMinimum !== undefined) bad.push(exclusiveMinimum);
    if (maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) bad.push(maximum + step);
    if (row.type === "integer") bad.push(1.5);
    for (const value of bad) expect(refused({ [name]: value })).toMatchObject({ param: name, status: 400 });
    const good = [minimum, maximum, exclusiveMinimum === undefined ? undefined : exclusiveMinimum + step];
    for (const value of [...good, row.default]) {
      if (value !== undefined) expect(valid({ [name]: value }).sampling).toEqual({ [name]: value });
    }
  });

  it.each([
    ["temperature", 2.1],
    ["temperature", -0.1],
    ["temperature", "hot"],
    ["top_p", 0],
    ["top_p", 1.1],
    ["presence_penalty", -2.5],
    ["frequency_penalty", 3],
    ["seed", 1.5],
    ["seed", 2 ** 53],
    ["n", 0],
    ["top_logprobs", 21],
    ["top_logprobs", -1],
    ["top_logprobs", 1.5],
  ])("refuses %s = %j", (name, value) => {
    expect(refused({ [name]: value, ...(name === "top_logprobs" ? { logprobs: true } : {}) })).toMatchObject({
      param: name,
      status: 400,
      type: "invalid_request_error",
    });
  });

  it("maps defaults and the seed to the native request", () => {
    const sampling = toNativeRequest(valid(), 100, "").sampling;
    for (const row of samplingOptions) expect(sampling[row.name]).toBe(row.default);
    const seeds: [number, number][] = [
      [-1, -1],
      [0, 0],
      [42, 42],
      [2 ** 32, 0],
      [2 ** 32 + 7, 7],
      [-2, 2 ** 32 - 2],
      [Number.MAX_SAFE_INTEGER, 2 ** 32 - 1],
      [-(2 ** 40), 0],
    ];
    for (const [given, sent] of seeds)
      expect(toNativeRequest(valid({ seed: given }), 100, "").sampling.seed).toBe(sent);
  });
});

describe("limits of the answer", () => {
  it("takes the smaller of the two token limits", () => {
    expect(valid().maxTokens).toBe(-1);
    expect(valid({ max_tokens: 5 }).maxTokens).toBe(5);
    expect(valid({ max_completion_tokens: 7 }).maxTokens).toBe(7);
    expect(valid({ max_tokens: 5, max_completion_tokens: 7 }).maxTokens).toBe(5);
    for (const name of ["max_tokens", "max_completion_tokens"]) {
      for (const value of [0, -1, 1.5, "5", 2 ** 31]) expect(refused({ [name]: value })).toMatchObject({ param: name });
    }
  });

  it("takes one to four stop strings, none empty", () => {
    expect(valid({ stop: "a" }).stop).toEqual(["a"]);
    expect(valid({ stop: ["a", "b", "c", "d"] }).stop).toEqual(["a", "b", "c", "d"]);
    expect(valid({ stop: "x".repeat(limits.stopLength) }).stop[0]).toHaveLength(limits.stopLength);
    const long = "x".repeat(limits.stopLength + 1);
    for (const stop of ["", [""], [], ["a", "b", "c", "d", "e"], ["a", 1], 1, {}, ["a", null], long, [long]]) {
      expect(refused({ stop })).toMatchObject({ param: "stop", status: 400 });
    }
  });
});

describe("stream_options", () => {
  it("needs stream: true", () => {
    const stream_options = { include_usage: true };
    expect(valid({ stream: true, stream_options })).toMatchObject({ stream: true, includeUsage: true });
    for (const stream of [false, null, undefined]) {
      expect(refused({ stream, stream_options })).toMatchObject({ param: "stream_options", status: 400 });
    }
    expect(refused({ stream: "true" })).toMatchObject({ param: "stream" });
  });

  it("knows two options", () => {
    expect(valid({ stream: true, stream_options: { include_obfuscation: false } }).includeUsage).toBe(false);
    for (const stream_options of [{ include_obfuscation: true }, { include_usage: 1 }, { other: true }, "x", []]) {
      expect(refused({ stream: true, stream_options })).toMatchObject({ param: "stream_options" });
    }
  });
});

describe("logit_bias", () => {
  it("maps token ids to biases", () => {
    const request = valid({ logit_bias: { "3": -100, "12": 2.5 } });
    expect([...toNativeRequest(request, 13, "").sampling.logit_bias]).toEqual([3, -100, 12, 2.5]);
    expect(() => toNativeRequest(request, 12, "")).toThrow(
      expect.objectContaining({ param: "logit_bias", status: 400 }),
    );
    expect(valid({ logit_bias: {} }).logitBias).toEqual({ ids: [], texts: [] });
  });

  it("takes llama-server's pairs, texts and false", () => {
    const pairs = [
      [3, 1.5],
      ["Hello", -2],
      [4, false],
    ];
    const ids = [
      [3, 1.5],
      [4, -Infinity],
    ];
    expect(valid({ logit_bias: pairs }).logitBias).toEqual({ ids, texts: [["Hello", -2]] });
    expect(valid({ logit_bias: { "4": false } }).logitBias).toEqual({ ids: [[4, -Infinity]], texts: [] });
    expect(valid({ logit_bias: [] }).logitBias).toEqual({ ids: [], texts: [] });
  });

  it("refuses anything else", () => {
    const many = Object.fromEntries(Array.from({ length: limits.logitBias + 1 }, (_, i) => [i, 0]));
    const bad: unknown[] = [
      { abc: 1 },
      { "1": 101 },
      { "1": -101 },
      { "1": "x" },
      { "-1": 1 },
      { "1.5": 1 },
      { "01": 1 },
      { "": 1 },
    ];
    const pairs = [
      [1],
      [[1]],
      [[1, 2, 3]],
      [[1.5, 1]],
      [[-1, 1]],
      [["", 1]],
      [[1, 101]],
      [[1, true]],
      [[true, 1]],
      [[1, "x"]],
    ];
    for (const logit_bias of [...bad, { "4294967296": 1 }, many, "x", 1, ...pairs]) {
      expect(refused({ logit_bias })).toMatchObject({ param: "logit_bias", status: 400 });
    }
  });
});

describe("fields that are not there yet", () => {
  const neutral: [string, unknown][] = [
    ["n", 1],
    ["logprobs", false],
    ["tools", []],
    ["tool_choice", "none"],
    ["tool_choice", "auto"],
    ["parallel_tool_calls", true],
    ["parallel_tool_calls", false],
    ["response_format", { type: "text" }],
    ["functions", []],
    ["function_call", "none"],
    ["modalities", ["text"]],
    ["verbosity", "medium"],
    ["service_tier", "auto"],
    ["service_tier", "default"],
    ["user", "u"],
    ["metadata", { a: "b" }],
    ["store", false],
    ["safety_identifier", "s"],
    ["model", "anything"],
  ];
  it.each(neutral)("accepts %s = %j", (name, value) => {
    expect(valid({ [name]: value })).toEqual(valid());
  });

  it("refuses top_logprobs without logprobs", () => {
    expect(refused({ top_logprobs: 3 })).toMatchObject({ param: "top_logprobs", status: 400 });
    expect(refused({ top_logprobs: 0, logprobs: false })).toMatchObject({ param: "top_logprobs", status: 400 });
  });

  const tool = { type: "function", function: { name: "f", parameters: {} } };
  const pending: [string, unknown][] = [
    ["tools", [tool]],
    ["tool_choice", "required"],
    ["tool_choice", { type: "function", function: { name: "f" } }],
    ["functions", [{ name: "f" }]],
    ["function_call", { name: "f" }],
    ["modalities", ["text", "audio"]],
    ["verbosity", "high"],
    ["reasoning_effort", "low"],
    ["audio", { voice: "alloy", format: "wav" }],
    ["prediction", { type: "content", content: "x" }],
    ["web_search_options", {}],
  ];
  it.each(pending)("refuses %s = %j as not supported yet", (name, value) => {
    const error = refused({ [name]: value });
    expect(error).toMatchObject({ code: "unsupported_parameter", param: name, status: 400 });
    expect(error.message).toContain("not supported yet");
  });

  const named = (json_schema: object) => ({ type: "json_schema", json_schema });
  it.each([
    { type: "xml" },
    "json",
    {},
    [],
    { type: "json_schema" },
    named({ schema: {} }),
    named({ name: "a b", schema: {} }),
    named({ name: "x" }),
    named({ name: "x", schema: "{}" }),
    named({ name: "x", schema: {}, strict: "yes" }),
    named({ name: "x", schema: {}, extra: 1 }),
  ])("refuses the malformed response_format %j", (response_format) => {
    expect(refused({ response_format })).toMatchObject({ param: "response_format", status: 400 });
  });

  it("refuses other service tiers", () => {
    expect(refused({ service_tier: "priority" })).toMatchObject({ param: "service_tier" });
  });
});

describe("llama-server's names", () => {
  it("for limits and logprobs", () => {
    expect(valid({ n_predict: 5, max_tokens: 7 }).maxTokens).toBe(5);
    expect(valid({ n_predict: -1, max_tokens: 7 }).maxTokens).toBe(7);
    expect(valid({ n_predict: -1 }).maxTokens).toBe(-1);
    expect(valid({ n_probs: 3 }).logprobs).toBe(3);
    expect(valid({ n_probs: 0 }).logprobs).toBe(-1);
    expect(valid({ logprobs: true, n_probs: 3 }).logprobs).toBe(3);
    expect(valid({ logprobs: true, top_logprobs: 2, n_probs: 3 }).logprobs).toBe(2);
    expect(refused({ logprobs: false, n_probs: 3 })).toMatchObject({ param: "n_probs" });
    expect(refused({ n_probs: 21 })).toMatchObject({ param: "n_probs" });
  });

  it("for samplers and their order", () => {
    expect(valid({ samplers: "tk" }).samplers).toEqual(["temperature", "top_k"]);
    expect(valid({ samplers: ["typical_p", "xtc"] }).samplers).toEqual(["typ_p", "xtc"]);
    expect(valid({ samplers: [] }).samplers).toEqual([]);
    for (const samplers of ["q", ["topk"], ["infill"], [1], 5, "t".repeat(33), ["", "top_k"]]) {
      expect(refused({ samplers })).toMatchObject({ param: "samplers", status: 400 });
    }
    expect(refused({ samplers: ["topk"] }).message).toContain("'top_k'");
    for (const dry_sequence_breakers of [[""], ["x".repeat(41)], Array(33).fill("x"), "x"]) {
      expect(refused({ dry_sequence_breakers })).toMatchObject({ param: "dry_sequence_breakers", status: 400 });
    }
  });

  it.each(["chat_parser", "chat_format", "grammar_lazy", "grammar_triggers", "preserved_tokens"])(
    "but not %s, which is its own",
    (name) => {
      for (const value of [{}, [], "x", null]) {
        expect(refused({ [name]: value })).toMatchObject({ param: name, code: "unsupported_parameter" });
      }
    },
  );
});
