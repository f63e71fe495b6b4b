/** Bounds of a request. More than that is a 400 that names the field. */
export const limits = {
  /** Messages in one request. */
  messages: 10_000,
  /** Parts in one message's content. */
  contentParts: 10_000,
  /** Alternatives in grammar_json_functions. */
  functions: 128,
  /** Calls in one assistant message. */
  toolCalls: 128,
  /** Stop strings (OpenAI's number), and UTF-16 units in one. */
  stops: 4,
  stopLength: 1_000,
  /** Prompts of one text completion. */
  prompts: 128,
  /** Most likely tokens beside each (top_logprobs). */
  logprobs: 20,
  /** Tokens of one call of /detokenize. */
  tokens: 1 << 20,
  /** DRY's sequence breakers, and bytes in one: llama.cpp looks at no more. */
  breakers: 32,
  breakerBytes: 40,
  /** Samplers in a row. */
  samplers: 32,
  /** Entries of logit_bias. */
  logitBias: 1_024,
  /** Objects and arrays inside each other, counted from the body itself. */
  depth: 64,
  /** Values in the whole body, counted with repetition: an object that is referred to twice counts twice. */
  values: 2_000_000,
  /** Bytes of an HTTP body. */
  bodyBytes: 16 * 1024 * 1024,
  /** UTF-16 units of a grammar. */
  grammarLength: 1 << 20,
  /** Answers to one request (n). */
  choices: 128,
  /** UTF-16 units of prompt_cache_key. */
  cacheKeyLength: 512,
} as const;
