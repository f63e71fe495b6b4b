import type { JsonSchema } from "./schema-types.js";

/** A field of OpenAI's request that is accepted and changes nothing, and why that does no harm. */
export interface HarmlessField {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly why: string;
}

export const harmlessFields: readonly HarmlessField[] = [
  { name: "user", schema: { type: "string" }, why: "Names the end user to OpenAI; there is nobody to report to." },
  { name: "safety_identifier", schema: { type: "string" }, why: "As user." },
  { name: "metadata", schema: { type: "object" }, why: "Belongs to stored completions; nothing is stored." },
  { name: "store", schema: { type: "boolean" }, why: "Nothing is ever stored, so false holds and true has no effect." },
  {
    name: "prompt_cache_retention",
    schema: { type: "string" },
    why: "Cells are kept for as long as there is room; answers do not depend on it.",
  },
  { name: "service_tier", schema: { enum: ["auto", "default"] }, why: "There is one tier; others are refused." },
];

/** A field of OpenAI's request that is known, but not there yet: only its neutral values are accepted. */
export interface PendingField {
  readonly name: string;
  /** Shape of any value, also of those that are refused: a wrong shape gets its own message. */
  readonly schema: JsonSchema;
  /** Whether the value asks for nothing. */
  readonly neutral: (value: unknown) => boolean;
  /** What is accepted, for the error message. */
  readonly accepted: string;
}

const never = () => false;
const anyValue = () => true;
const only =
  (...values: unknown[]) =>
  (value: unknown) =>
    values.includes(value);
const emptyArray = (value: unknown) => Array.isArray(value) && value.length === 0;

export const pendingFields: readonly PendingField[] = [
  { name: "tools", schema: { type: "array", maxItems: 128 }, neutral: emptyArray, accepted: "[]" },
  {
    name: "tool_choice",
    schema: { type: ["string", "object"] },
    neutral: only("none", "auto"),
    accepted: '"none" and "auto"',
  },
  { name: "parallel_tool_calls", schema: { type: "boolean" }, neutral: anyValue, accepted: "any boolean" },
  { name: "functions", schema: { type: "array", maxItems: 128 }, neutral: emptyArray, accepted: "[]" },
  {
    name: "function_call",
    schema: { type: ["string", "object"] },
    neutral: only("none", "auto"),
    accepted: '"none" and "auto"',
  },
  {
    name: "modalities",
    schema: { type: "array" },
    neutral: (value) => Array.isArray(value) && value.length === 1 && value[0] === "text",
    accepted: '["text"]',
  },
  { name: "verbosity", schema: { enum: ["low", "medium", "high"] }, neutral: only("medium"), accepted: '"medium"' },
  { name: "reasoning_effort", schema: { type: "string" }, neutral: never, accepted: "null" },
  { name: "audio", schema: { type: "object" }, neutral: never, accepted: "null" },
  { name: "prediction", schema: { type: "object" }, neutral: never, accepted: "null" },
  { name: "web_search_options", schema: { type: "object" }, neutral: never, accepted: "null" },
  { name: "moderation", schema: {}, neutral: never, accepted: "null" },
  { name: "prompt_cache_options", schema: { type: "object" }, neutral: never, accepted: "null" },
];
