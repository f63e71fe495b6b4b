/**
 * OpenAI's shapes, under OpenAI's names, as far as tokenloop speaks them; test/openai/types.test.ts holds them against
 * the official client's.
 */

export interface ChatCompletionContentPartText {
  type: "text";
  text: string;
}

export interface ChatCompletionContentPartRefusal {
  type: "refusal";
  refusal: string;
}

export interface ChatCompletionDeveloperMessageParam {
  role: "developer";
  content: string | ChatCompletionContentPartText[];
  name?: string | undefined;
}

export interface ChatCompletionSystemMessageParam {
  role: "system";
  content: string | ChatCompletionContentPartText[];
  name?: string | undefined;
}

export interface ChatCompletionUserMessageParam {
  role: "user";
  content: string | ChatCompletionContentPartText[];
  name?: string | undefined;
}

export interface ChatCompletionMessageFunctionToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface ChatCompletionAssistantMessageParam {
  role: "assistant";
  /** May be left out only when the message calls tools. */
  content?: string | (ChatCompletionContentPartText | ChatCompletionContentPartRefusal)[] | null | undefined;
  name?: string | undefined;
  refusal?: string | null | undefined;
  /** The model's thinking, as many servers return it; the template decides whether it is shown again. */
  reasoning_content?: string | null | undefined;
  tool_calls?: ChatCompletionMessageFunctionToolCall[] | undefined;
  /** @deprecated use tool_calls */
  function_call?: { name: string; arguments: string } | null | undefined;
}

export interface ChatCompletionToolMessageParam {
  role: "tool";
  content: string | ChatCompletionContentPartText[];
  tool_call_id: string;
}

export type ChatCompletionMessageParam =
  | ChatCompletionDeveloperMessageParam
  | ChatCompletionSystemMessageParam
  | ChatCompletionUserMessageParam
  | ChatCompletionAssistantMessageParam
  | ChatCompletionToolMessageParam;

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number; audio_tokens: number };
  completion_tokens_details: {
    reasoning_tokens: number;
    audio_tokens: number;
    /** Of OpenAI's `prediction`; speculative decoding is in `timings`. */
    accepted_prediction_tokens: number;
    rejected_prediction_tokens: number;
  };
}

/** tokenloop's addition: where the time went. Milliseconds, and tokens per second (0 where no time was measured). */
export interface Timings {
  /** Prompt tokens that were computed, i.e. not taken from the cache. */
  prompt_n: number;
  prompt_ms: number;
  prompt_per_second: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_second: number;
  queue_ms: number;
  /** Prompt tokens that were taken from the cache. */
  cache_n: number;
  /** Tokens that were guessed ahead, and those of them that were right; only with speculative decoding. */
  draft_n?: number;
  draft_n_accepted?: number;
}

export type FinishReason = "stop" | "length";

export interface ChatCompletionMessage {
  role: "assistant";
  content: string | null;
  refusal: string | null;
}

export interface ChatCompletionChoice {
  index: number;
  message: ChatCompletionMessage;
  logprobs: ChoiceLogprobs | null;
  finish_reason: FinishReason;
}

export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  /** Unix time in seconds. */
  created: number;
  model: string;
  system_fingerprint: string;
  choices: ChatCompletionChoice[];
  usage: CompletionUsage;
  timings: Timings;
}

export interface ChatCompletionChunkDelta {
  role?: "assistant";
  content?: string;
}

export interface ChatCompletionChunkChoice {
  index: number;
  delta: ChatCompletionChunkDelta;
  logprobs: ChoiceLogprobs | null;
  finish_reason: FinishReason | null;
}

export interface ChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  /** Unix time in seconds, the same on every chunk. */
  created: number;
  model: string;
  system_fingerprint: string;
  choices: ChatCompletionChunkChoice[];
  /** Only with `stream_options.include_usage`: null until the last chunk. */
  usage?: CompletionUsage | null;
  /** On the chunk that has the finish_reason. */
  timings?: Timings;
}

/** One token of the answer, with the model's own probability of it: before any sampler, bias or penalty. */
export interface TokenLogprob extends TopLogprob {
  /** The most likely tokens at this place, most likely first; as many as top_logprobs asked for. */
  top_logprobs: TopLogprob[];
}

export interface TopLogprob {
  /** The token's text; half a character shows as U+FFFD. */
  token: string;
  /** Natural logarithm of the probability, ≤ 0. */
  logprob: number;
  /** The token's bytes in UTF-8. */
  bytes: number[];
}

export interface ChoiceLogprobs {
  content: TokenLogprob[];
  refusal: null;
}
