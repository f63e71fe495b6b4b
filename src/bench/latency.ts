import type { Answer } from "./answer.js";

/** Latencies of one answer, in milliseconds, by the definitions of vLLM's benchmark. */
export interface Latency {
  /** From the request to its first text. */
  readonly ttft: number;
  /** From the request to the end of its answer. */
  readonly e2el: number;
  /** Time per output token after the first; undefined for an answer of one token, or of nobody knows how many. */
  readonly tpot: number | undefined;
  /** Gaps between pieces of text: 0 for those that came together. */
  readonly itl: readonly number[];
  /** Gaps between arrivals, however many pieces each brought: what a reader waits. */
  readonly icl: readonly number[];
}

/** Undefined for an answer without text. */
export function latencyOf(answer: Answer): Latency | undefined {
  const { pieces, sent, ended } = answer;
  const first = pieces[0];
  if (first === undefined) return undefined;
  const ttft = first - sent;
  const e2el = ended - sent;
  const tokens = tokensOf(answer);
  return {
    ttft,
    e2el,
    tpot: tokens > 1 ? (e2el - ttft) / (tokens - 1) : undefined,
    itl: gaps(pieces),
    icl: gaps([...new Set(pieces)]),
  };
}

/** Tokens of the answer: as the server counts them, or else its pieces. */
export function tokensOf({ completionTokens, pieces }: Answer): number {
  return completionTokens ?? pieces.length;
}

function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((time, i) => time - (times[i] ?? time));
}
