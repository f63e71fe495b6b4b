import type { samplingOptions } from "../options.js";
import type { ChatCompletionMessageParam } from "./types.js";

/** The sampling options of the option table; ranges and defaults are there (src/options.ts). */
export type SamplingParams = {
  [Name in (typeof samplingOptions)[number]["name"]]?: number | null | undefined;
};

/** Fields that OpenAI knows and that are accepted without effect; src/openai/fields.ts says why. */
export interface HarmlessParams {
  user?: string | undefined;
  safety_identifier?: string | null | undefined;
  metadata?: { [key: string]: string } | null | undefined;
  store?: boolean | null | undefined;
  id_slot?: number | null | undefined;
  n_cache_reuse?: number | null | undefined;
  n_keep?: number | null | undefined;
  n_discard?: number | null | undefined;
  backend_sampling?: boolean | null | undefined;
  prompt_cache_retention?: "in_memory" | "24h" | null | undefined;
  service_tier?: "auto" | "default" | null | undefined;
}

/** Fields that are accepted in their neutral value only, until there is more to them. */
export interface NeutralParams {
  tools?: never[] | null | undefined;
  tool_choice?: "none" | "auto" | null | undefined;
  parallel_tool_calls?: boolean | null | undefined;
  modalities?: "text"[] | null | undefined;
  verbosity?: "medium" | null | undefined;
  reasoning_effort?: null | undefined;
  timings_per_token?: false | null | undefined;
  return_progress?: false | null | undefined;
  return_tokens?: false | null | undefined;
  post_sampling_probs?: false | null | undefined;
  verbose?: false | null | undefined;
  response_fields?: never[] | null | undefined;
  lora?: never[] | null | undefined;
}

export type ResponseFormat =
  | { type: "text" }
  | { type: "json_object" }
  | {
      type: "json_schema";
      json_schema: {
        /** 1 to 64 letters, digits, underscores and hyphens. */
        name: string;
        description?: string | undefined;
        /** JSON Schema, draft 2020-12 or draft-07's spellings. */
        schema?: Record<string, unknown> | undefined;
        strict?: boolean | null | undefined;
      };
    };

/** Calls of functions as JSON objects, e.g. `{ properties: { function: { const: "f" }, arguments: {…} } }`. */
export interface GrammarJsonFunctions {
  oneOf?: JsonFunction[] | undefined;
  anyOf?: JsonFunction[] | undefined;
  $defs?: Record<string, unknown> | undefined;
}

export interface JsonFunction {
  type?: "object" | undefined;
  /** JSON Schema of each property. */
  properties: Record<string, unknown>;
  [keyword: string]: unknown;
}

export interface ChatCompletionStreamOptions {
  /** Adds a last chunk with the usage. */
  include_usage?: boolean | undefined;
  include_obfuscation?: false | undefined;
}

export interface ChatCompletionCreateParamsBase extends SamplingParams, HarmlessParams, NeutralParams {
  /** At least one. */
  messages: ChatCompletionMessageParam[];
  /** Any value: an engine has one model, and the answer carries its id. */
  model?: string | null | undefined;
  /** Most tokens to generate, ≥ 1; default: until the context is full. With both limits the smaller one holds. */
  max_completion_tokens?: number | null | undefined;
  /** @deprecated OpenAI's older name of max_completion_tokens. */
  max_tokens?: number | null | undefined;
  /** Up to four strings that end the answer; the answer does not contain them. */
  stop?: string | string[] | null | undefined;
  /**
   * json_object: the answer is a JSON object. json_schema: it is a compact JSON document that the schema allows, keys in the
   * schema's order; with `strict: true` the schema must keep to OpenAI's subset. A schema that cannot be enforced exactly is
   * refused with a SchemaError (400) that has its JSON pointer.
   */
  response_format?: ResponseFormat | null | undefined;
  /**
   * A grammar in llama.cpp's notation (GBNF), at most 1 MiB, which the whole answer follows: its probabilities are the
   * model's own, shared out anew over what the grammar allows. llama-server's name. Errors: 400 with line and column.
   */
  grammar?: string | null | undefined;
  /**
   * LocalAI's name. The answer is one of the objects under `oneOf` or `anyOf` (1..128, one of the two lists), each with all
   * of its properties and no others; `$defs` has what they refer to. The answer is text: no tool call comes of it. Errors: as
   * response_format's.
   */
  grammar_json_functions?: GrammarJsonFunctions | null | undefined;
  /**
   * White space between the tokens of a JSON answer: "compact" has none, "model" lets the model put up to 8 characters of it
   * wherever JSON allows them, as it learnt to. Default "compact". Only where the answer is JSON.
   */
  json_whitespace?: "compact" | "model" | null | undefined;
  /**
   * Adds to each token of the answer the logarithm of the probability that the model gave it: before samplers, biases and
   * penalties. Default false.
   */
  logprobs?: boolean | null | undefined;
  /** How many of the most likely tokens to list at each place, 0..20, default 0; only with `logprobs: true`. */
  top_logprobs?: number | null | undefined;
  /**
   * Answers to the same prompt, 1..128, default 1. The prompt is computed once; answer i draws with seed + i. Each takes a
   * place in the queue.
   */
  n?: number | null | undefined;
  /**
   * Prompts share KV cells only with earlier prompts of the same key, at most 512 characters; default "". Give each tenant
   * its own: then neither answers nor their timing tell one tenant about another.
   */
  prompt_cache_key?: string | null | undefined;
  /** llama-server's name: false uses no cells of earlier prompts and leaves none to later ones; default true. */
  cache_prompt?: boolean | null | undefined;
  /**
   * Order of service, as in vLLM: smaller ones first, default 0. A waiting request takes the place of a running one with
   * a larger number, which goes on later.
   */
  priority?: number | null | undefined;
  /**
   * Milliseconds from now on within which the request must be done, waiting included; else it fails with code
   * "request_timeout" (status 408). 0 or absent: no limit.
   */
  timeout_ms?: number | null | undefined;
  /**
   * llama-server's name: milliseconds from the first token on, after which the answer ends with finish_reason "length",
   * once it has a line. 0, -1 or absent: no limit.
   */
  t_max_predict_ms?: number | null | undefined;
  /**
   * Token id to a value from -100 to 100 that is added to its logit; false bans the token. Or llama-server's pairs, in which
   * a text stands for each of its tokens. At most 1024.
   */
  logit_bias?: Record<string, number | false> | [token: number | string, bias: number | false][] | null | undefined;
  /** llama-server's name of max_tokens; -1: no limit. */
  n_predict?: number | null | undefined;
  /** llama-server's name: logprobs with so many top_logprobs, 0..20; 0: none. */
  n_probs?: number | null | undefined;
  /** Tokens that end generation are never drawn, unless a grammar allows nothing else; default false. */
  ignore_eos?: boolean | null | undefined;
  /** vLLM's name: the same for the first so many tokens; default 0. Stop strings still end the answer. */
  min_tokens?: number | null | undefined;
  /**
   * Which samplers run, and in which order: llama.cpp's names, or its letters. Default: penalties, dry, top_n_sigma, top_k,
   * typ_p, top_p, min_p, xtc, temperature ("edskypmxt").
   */
  samplers?: string | string[] | null | undefined;
  /** Texts at which DRY takes a repetition to be over, at most 32 of 40 bytes; default: newline, colon, quote, asterisk. */
  dry_sequence_breakers?: string[] | null | undefined;
  stream?: boolean | null | undefined;
  /** Only with `stream: true`. */
  stream_options?: ChatCompletionStreamOptions | null | undefined;
}

export interface ChatCompletionCreateParamsNonStreaming extends ChatCompletionCreateParamsBase {
  stream?: false | null | undefined;
}

export interface ChatCompletionCreateParamsStreaming extends ChatCompletionCreateParamsBase {
  stream: true;
}

export type ChatCompletionCreateParams = ChatCompletionCreateParamsNonStreaming | ChatCompletionCreateParamsStreaming;
