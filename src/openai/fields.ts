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
  { name: "id_slot", schema: { type: "integer" }, why: "There are no slots: prompts share what they begin with." },
  { name: "n_cache_reuse", schema: { type: "integer" }, why: "As id_slot; answers do not depend on it." },
  { name: "n_keep", schema: { type: "integer" }, why: "Belongs to context shifts, which are never done." },
  { name: "n_discard", schema: { type: "integer" }, why: "As n_keep." },
  { name: "backend_sampling", schema: { type: "boolean" }, why: "Where a token is drawn does not change which one." },
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
  { name: "timings_per_token", schema: { type: "boolean" }, neutral: only(false), accepted: "false" },
  { name: "return_progress", schema: { type: "boolean" }, neutral: only(false), accepted: "false" },
  { name: "return_tokens", schema: { type: "boolean" }, neutral: only(false), accepted: "false" },
  { name: "post_sampling_probs", schema: { type: "boolean" }, neutral: only(false), accepted: "false" },
  { name: "verbose", schema: { type: "boolean" }, neutral: only(false), accepted: "false" },
  { name: "response_fields", schema: { type: "array" }, neutral: emptyArray, accepted: "[]" },
  { name: "lora", schema: { type: "array" }, neutral: emptyArray, accepted: "[]" },
  { name: "moderation", schema: {}, neutral: never, accepted: "null" },
  { name: "prompt_cache_options", schema: { type: "object" }, neutral: never, accepted: "null" },
];

/** What llama-server's own parts tell each other; it takes them from clients, too, and has crashed over them. */
export const internalFields: ReadonlySet<string> = new Set([
  "chat_format",
  "chat_parser",
  "generation_prompt",
  "grammar_lazy",
  "grammar_triggers",
  "message_delimiters",
  "parse_tool_calls",
  "preserved_tokens",
  "reasoning_budget_end_tags",
  "reasoning_budget_message",
  "reasoning_budget_start_tag",
]);
