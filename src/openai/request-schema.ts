import { type OptionRow, samplingOptions } from "../options.js";
import { harmlessFields, pendingFields } from "./fields.js";
import { limits } from "./limits.js";
import type { JsonSchema } from "./schema-types.js";

/**
 * The one JSON Schema of a request, compiled ahead of time by compile-schema.mjs. It says what shape each field has;
 * what JSON Schema cannot say well (which fields exist, which belong together) is in validate.ts. Fields whose value is
 * null have been taken out before it runs.
 */

const text: JsonSchema = { type: "string" };

/** Which parts are there, and which are supported, is checked in messages.ts, which can say so. */
const content: JsonSchema = {
  type: ["string", "array"],
  minItems: 1,
  maxItems: limits.contentParts,
  items: { type: "object", properties: { type: text, text, refusal: text }, required: ["type"] },
};

const call: JsonSchema = {
  type: "object",
  properties: { name: { type: "string", minLength: 1 }, arguments: text },
  required: ["name", "arguments"],
  additionalProperties: false,
};

function message(role: string, properties: Record<string, JsonSchema>, required: readonly string[]): JsonSchema {
  return {
    properties: { role: { const: role }, name: text, ...properties },
    required: ["role", ...required],
    additionalProperties: false,
  };
}

const messages: JsonSchema = {
  type: "array",
  minItems: 1,
  maxItems: limits.messages,
  items: {
    type: "object",
    discriminator: { propertyName: "role" },
    required: ["role"],
    oneOf: [
      message("developer", { content }, ["content"]),
      message("system", { content }, ["content"]),
      message("user", { content }, ["content"]),
      message(
        "assistant",
        {
          content,
          refusal: text,
          reasoning_content: text,
          annotations: { type: "array" },
          tool_calls: {
            type: "array",
            maxItems: limits.toolCalls,
            items: {
              type: "object",
              properties: { id: { type: "string", minLength: 1 }, type: { enum: ["function"] }, function: call },
              required: ["id", "type", "function"],
              additionalProperties: false,
            },
          },
          function_call: call,
        },
        [],
      ),
      message("tool", { content, tool_call_id: { type: "string", minLength: 1 } }, ["content", "tool_call_id"]),
    ],
  },
};

const tokenLimit: JsonSchema = { type: "integer", minimum: 1, maximum: 2_147_483_647 };
const stopString = { minLength: 1, maxLength: limits.stopLength };

/** What the schemas in it hold is the schema compiler's to judge. */
const functionAlternatives: JsonSchema = {
  type: "array",
  minItems: 1,
  maxItems: limits.functions,
  items: {
    type: "object",
    properties: { type: { const: "object" }, properties: { type: "object" } },
    required: ["properties"],
  },
};

/** What is added to a logit; false bans the token. */
const bias: JsonSchema = { type: ["number", "boolean"], minimum: -100, maximum: 100 };

/** Fields that do something, beside the sampling options. */
const ownFields: Record<string, JsonSchema> = {
  messages,
  model: text,
  max_tokens: tokenLimit,
  max_completion_tokens: tokenLimit,
  stop: {
    type: ["string", "array"],
    ...stopString,
    minItems: 1,
    maxItems: limits.stops,
    items: { type: "string", ...stopString },
  },
  grammar: { type: "string", minLength: 1, maxLength: limits.grammarLength },
  response_format: {
    type: "object",
    properties: {
      type: { enum: ["text", "json_object", "json_schema"] },
      json_schema: {
        type: "object",
        properties: {
          name: { type: "string", pattern: "^[A-Za-z0-9_-]{1,64}$" },
          description: { type: ["string", "null"] },
          schema: { type: "object" },
          strict: { type: ["boolean", "null"] },
        },
        required: ["name"],
        additionalProperties: false,
      },
    },
    required: ["type"],
    additionalProperties: false,
  },
  grammar_json_functions: {
    type: "object",
    properties: {
      oneOf: functionAlternatives,
      anyOf: functionAlternatives,
      $defs: { type: "object" },
    },
    additionalProperties: false,
  },
  json_whitespace: { enum: ["compact", "model"] },
  logprobs: { type: "boolean" },
  top_logprobs: { type: "integer", minimum: 0, maximum: limits.logprobs },
  n: { type: "integer", minimum: 1, maximum: limits.choices },
  prompt_cache_key: { type: "string", maxLength: limits.cacheKeyLength },
  cache_prompt: { type: "boolean" },
  priority: { type: "integer", minimum: -2_147_483_647, maximum: 2_147_483_647 },
  timeout_ms: { type: "integer", minimum: 0, maximum: 2_147_483_647 },
  t_max_predict_ms: { type: "integer", minimum: -1, maximum: 2_147_483_647 },
  stream: { type: "boolean" },
  stream_options: {
    type: "object",
    properties: { include_usage: { type: "boolean" }, include_obfuscation: { type: "boolean" } },
    additionalProperties: false,
  },
  logit_bias: {
    type: ["object", "array"],
    maxProperties: limits.logitBias,
    additionalProperties: bias,
    maxItems: limits.logitBias,
    items: { type: "array", minItems: 2, maxItems: 2, items: { type: ["number", "string", "boolean"] } },
  },
  n_predict: { type: "integer", minimum: -1, maximum: 2_147_483_647 },
  n_probs: { type: "integer", minimum: 0, maximum: limits.logprobs },
  ignore_eos: { type: "boolean" },
  min_tokens: { type: "integer", minimum: 0, maximum: 2_147_483_647 },
  samplers: { type: ["string", "array"], maxLength: limits.samplers, maxItems: limits.samplers, items: text },
  dry_sequence_breakers: { type: "array", maxItems: limits.breakers, items: { type: "string", minLength: 1 } },
};

/** An option row without what only people and the CLI need. */
function optionSchema({ type, minimum, exclusiveMinimum, maximum }: OptionRow): JsonSchema {
  return {
    type,
    ...(minimum === undefined ? {} : { minimum }),
    ...(exclusiveMinimum === undefined ? {} : { exclusiveMinimum }),
    ...(maximum === undefined ? {} : { maximum }),
  };
}

export const requestSchema: JsonSchema = {
  type: "object",
  properties: {
    ...ownFields,
    ...Object.fromEntries(samplingOptions.map((row) => [row.name, optionSchema(row)])),
    ...Object.fromEntries([...pendingFields, ...harmlessFields].map(({ name, schema }) => [name, schema])),
  },
  required: ["messages"],
};

/** Names of all fields that a request may have. */
export const knownFields: ReadonlySet<string> = new Set(Object.keys(requestSchema.properties ?? {}));
