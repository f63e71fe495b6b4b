import { randomBytes } from "node:crypto";
import type { NativeResult } from "../native.js";
import type {
  ChatCompletionChunk,
  ChatCompletionChunkChoice,
  ChoiceLogprobs,
  CompletionUsage,
  FinishReason,
  Timings,
  TokenLogprob,
} from "./types.js";

export interface ChunkOptions {
  /** Id of the loaded model. */
  model: string;
  /** `system_fingerprint` of the engine. */
  fingerprint: string;
  /** Whether every chunk has a `usage` key, and a last chunk carries the numbers. */
  includeUsage: boolean;
}

/** Builds the chunks of one answer. Everything it holds belongs to that answer. */
export class ChunkBuilder {
  readonly #id = `chatcmpl-${randomBytes(16).toString("hex")}`;
  readonly #created = Math.floor(Date.now() / 1000);
  readonly #options: ChunkOptions;

  constructor(options: ChunkOptions) {
    this.#options = options;
  }

  /** The first chunk of a choice. */
  role(index: number): ChatCompletionChunk {
    return this.#chunk([{ index, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }]);
  }

  /** Text, and where asked for the logprobs of the tokens that end in it. */
  content(index: number, text: string, entries: TokenLogprob[] = []): ChatCompletionChunk {
    return this.#chunk([{ index, delta: { content: text }, logprobs: toLogprobs(entries), finish_reason: null }]);
  }

  /** The last chunk of a choice, with the logprobs of tokens that had no text of their own. */
  finish(index: number, reason: FinishReason, result: NativeResult, entries: TokenLogprob[] = []): ChatCompletionChunk {
    const last = this.#chunk([{ index, delta: {}, logprobs: toLogprobs(entries), finish_reason: reason }]);
    last.timings = timingsOf(result);
    return last;
  }

  /** The chunk after the last ones, where usage was asked for: it has the numbers of all choices. */
  usage(results: readonly NativeResult[]): ChatCompletionChunk[] {
    if (!this.#options.includeUsage) return [];
    const usage = this.#chunk([]);
    usage.usage = usageOf(results);
    return [usage];
  }

  #chunk(choices: ChatCompletionChunkChoice[]): ChatCompletionChunk {
    const { model, fingerprint, includeUsage } = this.#options;
    const chunk: ChatCompletionChunk = {
      id: this.#id,
      object: "chat.completion.chunk",
      created: this.#created,
      model,
      system_fingerprint: fingerprint,
      choices,
    };
    if (includeUsage) chunk.usage = null;
    return chunk;
  }
}

function toLogprobs(entries: TokenLogprob[]): ChoiceLogprobs | null {
  return entries.length === 0 ? null : { content: entries, refusal: null };
}

/** The prompt counts once, whatever the number of answers; of it, what was cached before the first of them ran. */
function usageOf(results: readonly NativeResult[]): CompletionUsage {
  const prompt = Math.max(...results.map(({ prompt_tokens }) => prompt_tokens));
  const cached = Math.min(...results.map(({ cached_tokens }) => cached_tokens));
  const completion = results.reduce((sum, { completion_tokens }) => sum + completion_tokens, 0);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

function timingsOf(result: NativeResult): Timings {
  const computed = result.prompt_tokens - result.cached_tokens;
  return {
    prompt_n: computed,
    prompt_ms: result.prompt_ms,
    prompt_per_second: perSecond(computed, result.prompt_ms),
    predicted_n: result.completion_tokens,
    predicted_ms: result.predicted_ms,
    predicted_per_second: perSecond(result.completion_tokens, result.predicted_ms),
    queue_ms: result.queue_ms,
    cache_n: result.cached_tokens,
    ...(result.drafted_tokens === undefined
      ? {}
      : { draft_n: result.drafted_tokens, draft_n_accepted: result.accepted_tokens ?? 0 }),
  };
}

/** 0 instead of Infinity, which JSON cannot say. */
function perSecond(tokens: number, milliseconds: number): number {
  return milliseconds > 0 ? (tokens * 1000) / milliseconds : 0;
}

/**
 * Serialises the chunks of one answer. A plain content chunk, which is nearly every one, differs from the next only in
 * its text: the rest is serialised once, which takes the cost per token from about 2.8 µs to 0.2 µs.
 */
export class ChunkSerializer {
  #frame: { prefix: string; suffix: string } | undefined;

  /** Exactly `JSON.stringify(chunk)`. */
  serialize(chunk: ChatCompletionChunk): string {
    const text = plainContent(chunk);
    if (text === undefined) return JSON.stringify(chunk);
    this.#frame ??= frameOf(chunk);
    return this.#frame.prefix + JSON.stringify(text) + this.#frame.suffix;
  }
}

/** The text of a chunk that is nothing but text of choice 0; undefined for every other chunk. */
function plainContent(chunk: ChatCompletionChunk): string | undefined {
  const choice = chunk.choices[0];
  if (
    choice === undefined ||
    chunk.choices.length !== 1 ||
    choice.index !== 0 ||
    choice.finish_reason !== null ||
    choice.logprobs !== null
  ) {
    return undefined;
  }
  const { delta } = choice;
  return Object.keys(delta).length === 1 ? delta.content : undefined;
}

function frameOf(chunk: ChatCompletionChunk): { prefix: string; suffix: string } {
  const [choice] = chunk.choices;
  const empty = JSON.stringify({ ...chunk, choices: [{ ...choice, delta: { content: "" } }] });
  // A quotation mark in a model's name would be escaped, so the marker occurs only where it is meant.
  const marker = '"delta":{"content":"';
  const at = empty.indexOf(marker) + marker.length - 1;
  return { prefix: empty.slice(0, at), suffix: empty.slice(at + 2) };
}
