// Shapes of OpenAI's answers as JSON Schemas, written for this suite: what must be there, of which type. Keys that
// OpenAI does not know are allowed, as clients allow them.

const text = { type: "string" };
const filled = { type: "string", minLength: 1 };
const count = { type: "integer", minimum: 0 };
/** @param {object} schema */
const orNull = (schema) => ({ anyOf: [schema, { type: "null" }] });
/** @param {object} items */
const list = (items) => ({ type: "array", items });
/**
 * @param {Record<string, object>} required
 * @param {Record<string, object>} optional
 */
const object = (required, optional = {}) => ({
  type: "object",
  properties: { ...required, ...optional },
  required: Object.keys(required),
});

const usage = object(
  { prompt_tokens: count, completion_tokens: count, total_tokens: count },
  {
    prompt_tokens_details: orNull(object({}, { cached_tokens: count, audio_tokens: count })),
    completion_tokens_details: orNull(
      object(
        {},
        {
          reasoning_tokens: count,
          audio_tokens: count,
          accepted_prediction_tokens: count,
          rejected_prediction_tokens: count,
        },
      ),
    ),
  },
);

const bytes = orNull(list({ type: "integer", minimum: 0, maximum: 255 }));
const probability = { token: text, logprob: { type: "number", maximum: 0 }, bytes };
const logprobEntries = orNull(list(object({ ...probability, top_logprobs: list(object(probability)) })));
const logprobs = orNull(object({ content: logprobEntries, refusal: logprobEntries }));

const finishReason = { enum: ["stop", "length", "tool_calls", "content_filter", "function_call"] };

const toolCall = object({
  id: filled,
  type: { const: "function" },
  function: object({ name: filled, arguments: text }),
});
const message = object(
  { role: { const: "assistant" }, content: orNull(text), refusal: orNull(text) },
  { tool_calls: { type: "array", items: toolCall, minItems: 1 } },
);

const id = { type: "string", pattern: "^chatcmpl-." };
const created = { type: "integer", minimum: 1_600_000_000 };
const fingerprint = { system_fingerprint: orNull(text), service_tier: orNull(text) };

const toolCallDelta = object(
  { index: { type: "integer", minimum: 0, maximum: 127 } },
  { id: filled, type: { const: "function" }, function: object({}, { name: filled, arguments: text }) },
);
const delta = object(
  {},
  {
    role: { const: "assistant" },
    content: orNull(text),
    refusal: orNull(text),
    tool_calls: { type: "array", items: toolCallDelta, minItems: 1 },
  },
);

const model = object({ id: filled, object: { const: "model" }, created: { type: "integer" }, owned_by: text });

const textLogprobs = orNull(
  object({
    tokens: list(text),
    token_logprobs: list(orNull({ type: "number", maximum: 0 })),
    top_logprobs: orNull(list(orNull({ type: "object", additionalProperties: { type: "number", maximum: 0 } }))),
    text_offset: list(count),
  }),
);
/** @param {object} finish */
const textCompletion = (finish) =>
  object(
    {
      id: { type: "string", pattern: "^cmpl-." },
      object: { const: "text_completion" },
      created,
      model: filled,
      choices: list(object({ index: count, text, logprobs: textLogprobs, finish_reason: finish })),
    },
    { usage: orNull(usage), ...fingerprint },
  );

export const schemas = {
  completion: object(
    {
      id,
      object: { const: "chat.completion" },
      created,
      model: filled,
      choices: {
        type: "array",
        minItems: 1,
        items: object({ index: count, message, logprobs, finish_reason: finishReason }),
      },
      usage,
    },
    fingerprint,
  ),
  chunk: object(
    {
      id,
      object: { const: "chat.completion.chunk" },
      created,
      model: filled,
      choices: list(
        object(
          { index: { type: "integer", minimum: 0, maximum: 127 }, delta, finish_reason: orNull(finishReason) },
          { logprobs },
        ),
      ),
    },
    { usage: orNull(usage), ...fingerprint },
  ),
  textCompletion: textCompletion({ enum: ["stop", "length"] }),
  textChunk: textCompletion(orNull({ enum: ["stop", "length"] })),
  model,
  modelList: object({ object: { const: "list" }, data: list(model) }),
  error: {
    ...object({
      error: {
        ...object({ message: filled, type: filled, param: orNull(text), code: orNull(text) }),
      },
    }),
  },
};
