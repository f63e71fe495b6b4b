import type { Chunk } from "./target.js";

/** How a request ended. */
export type Ending =
  | { readonly kind: "completed" }
  | { readonly kind: "cancelled" /** Milliseconds from the cancel until it was over. */; readonly settledMs: number }
  | { readonly kind: "failed"; readonly type: string; readonly message: string };

/** What came of one request. Times are milliseconds since the load's start. */
export interface Answer {
  readonly index: number;
  /** When it was due, and when it was sent. */
  readonly due: number;
  readonly sent: number;
  readonly ended: number;
  /** When each piece of text came; pieces that came together have the same time. */
  readonly pieces: readonly number[];
  readonly ending: Ending;
  readonly finishReason: string | undefined;
  /** Undefined where the server does not say. */
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly completionTokens: number | undefined;
  /** Tokens that were asked for at most. */
  readonly wantedTokens: number;
}

/** Collects the chunks of an answer. */
export class AnswerReader {
  readonly pieces: number[] = [];
  finishReason: string | undefined;
  promptTokens: number | undefined;
  cachedTokens: number | undefined;
  completionTokens: number | undefined;
  fingerprint: string | undefined;

  /** @param at when it came; see Answer */
  read(chunk: Chunk, at: number): void {
    const choice = chunk.choices?.[0];
    const delta = choice?.delta;
    if (hasText(delta?.content) || hasText(delta?.reasoning_content) || hasEntries(delta?.tool_calls)) {
      this.pieces.push(at);
    }
    if (typeof choice?.finish_reason === "string") this.finishReason = choice.finish_reason;
    if (typeof chunk.system_fingerprint === "string") this.fingerprint = chunk.system_fingerprint;
    const { usage } = chunk;
    if (usage === undefined || usage === null) return;
    this.promptTokens = count(usage.prompt_tokens) ?? this.promptTokens;
    this.completionTokens = count(usage.completion_tokens) ?? this.completionTokens;
    this.cachedTokens = count(usage.prompt_tokens_details?.cached_tokens) ?? this.cachedTokens;
  }
}

const hasText = (value: unknown) => typeof value === "string" && value !== "";
const hasEntries = (value: unknown) => Array.isArray(value) && value.length > 0;
const count = (value: unknown) => (typeof value === "number" && value >= 0 ? value : undefined);
