import type { ChatCompletionCreateParamsBase } from "./params.js";
import type { CompletionUsage, Timings } from "./types.js";

/** OpenAI's shapes of the older text completions, under OpenAI's names. */

/** Fields of chat completions that mean nothing without messages. */
export const chatOnlyFields = [
  "messages",
  "max_completion_tokens",
  "top_logprobs",
  "n_probs",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "functions",
  "function_call",
  "modalities",
  "audio",
  "reasoning_effort",
  "verbosity",
  "web_search_options",
  "prediction",
] as const;

export interface CompletionCreateParamsBase
  extends Omit<ChatCompletionCreateParamsBase, (typeof chatOnlyFields)[number] | "logprobs" | "max_tokens"> {
  /**
   * What the text goes on from: a text, token ids, or up to 128 of either. Control tokens in texts are tokens; the
   * vocabulary's first token is put before texts, where the model wants one, and not before ids.
   */
  prompt: string | string[] | number[] | number[][];
  /** Most tokens to generate, ≥ 0; default 16, as OpenAI has it. 0 needs `echo`. */
  max_tokens?: number | null | undefined;
  /** How many of the most likely tokens to list beside each, 0..20; default: no logprobs. */
  logprobs?: number | null | undefined;
  /** Puts the prompt before the text. Not with `logprobs`: those of the prompt are not computed. Default false. */
  echo?: boolean | null | undefined;
  /** Only 1: one text is made for each that is returned. */
  best_of?: 1 | null | undefined;
  /** Only null: text is not filled in before a suffix. */
  suffix?: null | undefined;
}

export interface CompletionCreateParamsNonStreaming extends CompletionCreateParamsBase {
  stream?: false | null | undefined;
}

export interface CompletionCreateParamsStreaming extends CompletionCreateParamsBase {
  stream: true;
}

export type CompletionCreateParams = CompletionCreateParamsNonStreaming | CompletionCreateParamsStreaming;

/** Logprobs of a text: one entry a token in each list. */
export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  /** By the tokens' texts; null where no alternatives were asked for. */
  top_logprobs: Record<string, number>[] | null;
  /** Where each token begins in the text, in characters. */
  text_offset: number[];
}

export interface CompletionChoice {
  index: number;
  text: string;
  logprobs: CompletionLogprobs | null;
  /** null until the last chunk of a stream. */
  finish_reason: "stop" | "length" | null;
}

/** A whole text completion, or a chunk of one: OpenAI gives both one shape. */
export interface Completion<Reason = "stop" | "length"> {
  id: string;
  object: "text_completion";
  /** Unix time in seconds. */
  created: number;
  model: string;
  system_fingerprint: string;
  choices: (CompletionChoice & { finish_reason: Reason })[];
  usage: CompletionUsage;
  timings: Timings;
}

export interface CompletionChunk extends Omit<Completion<CompletionChoice["finish_reason"]>, "usage" | "timings"> {
  /** Only with `stream_options.include_usage`: null until the last chunk. */
  usage?: CompletionUsage | null;
  /** On the chunk that has the finish_reason. */
  timings?: Timings;
}
