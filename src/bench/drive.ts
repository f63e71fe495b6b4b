import { setMaxListeners } from "node:events";
import { type Answer, AnswerReader, type Ending } from "./answer.js";
import type { Load, Planned } from "./plan.js";
import { promptText, type TokenRate, wordsFor } from "./prompts.js";
import { RequestFailure, type Target } from "./target.js";

export interface DriveOptions {
  target: Target;
  load: Load;
  rate: TokenRate;
  /** Fields of every request, e.g. response_format. */
  fields: Readonly<Record<string, unknown>>;
  /** Milliseconds that a request may take. */
  timeoutMs: number;
  signal: AbortSignal;
  onAnswer?: ((answer: Answer) => void) | undefined;
}

/** What a load brought. */
export interface Driven {
  answers: Answer[];
  /** Milliseconds from the start to the end of the last answer. */
  durationMs: number;
  /** Most requests that were out at a time. */
  peakConcurrency: number;
  fingerprint: string | undefined;
}

/** Sends every request of the plan when it is due, at most `concurrency` at a time. Rejects only when `signal` aborts. */
export async function drive(plan: readonly Planned[], options: DriveOptions): Promise<Driven> {
  const { load, signal } = options;
  // Every request that runs or waits listens to it.
  setMaxListeners(0, signal);
  const answers: Answer[] = [];
  const waiting: (() => void)[] = [];
  let running = 0;
  let peakConcurrency = 0;
  let fingerprint: string | undefined;
  const start = performance.now();

  const one = async (planned: Planned): Promise<void> => {
    const due = planned.at * 1000;
    await sleep(due - (performance.now() - start), signal);
    // First come, first served: who leaves hands its place on.
    if (running < load.concurrency) running++;
    else await place(waiting, signal);
    peakConcurrency = Math.max(peakConcurrency, running);
    try {
      const sent = performance.now();
      const { reader, ending } = await exchange(planned, options);
      const answer = toAnswer(planned, reader, ending, { start, due, sent });
      fingerprint = reader.fingerprint ?? fingerprint;
      answers.push(answer);
      options.onAnswer?.(answer);
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
  await Promise.all(plan.map(one));
  signal.throwIfAborted();
  const durationMs = answers.reduce((last, { ended }) => Math.max(last, ended), 0);
  return { answers, durationMs, peakConcurrency, fingerprint };
}

async function exchange(planned: Planned, options: DriveOptions): Promise<{ reader: AnswerReader; ending: Ending }> {
  const { target, load, fields, timeoutMs, signal } = options;
  const reader = new AnswerReader();
  const controller = new AbortController();
  let why: "cancelled" | "timeout" | undefined;
  let endedAt = 0;
  const end = (reason: "cancelled" | "timeout") => {
    if (why !== undefined) return;
    why = reason;
    endedAt = performance.now();
    controller.abort(new Error(reason));
  };
  const cancelIfDue = () => {
    if (planned.cancelAfter !== undefined && reader.pieces.length >= planned.cancelAfter) end("cancelled");
  };
  const onAbort = () => controller.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => end("timeout"), timeoutMs);
  try {
    const body = { ...requestBody(planned, load, options.rate), ...fields };
    const sending = target.send(body, controller.signal, (chunk, at) => {
      reader.read(chunk, at);
      cancelIfDue();
    });
    if (planned.cancelAfter === 0) setImmediate(cancelIfDue);
    await sending;
    return { reader, ending: { kind: "completed" } };
  } catch (error) {
    signal.throwIfAborted();
    if (why === "cancelled") return { reader, ending: { kind: "cancelled", settledMs: performance.now() - endedAt } };
    return { reader, ending: toFailure(error, why === "timeout") };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function requestBody(planned: Planned, load: Load, rate: TokenRate): Record<string, unknown> {
  const words = wordsFor(planned.promptTokens, rate);
  const shared = Math.round(words * load.prefixShare);
  return {
    messages: [{ role: "user", content: promptText(words, shared, load.seed, planned.index) }],
    max_tokens: planned.outputTokens,
    seed: planned.seed,
    stream: true,
    stream_options: { include_usage: true },
  };
}

function toFailure(error: unknown, timedOut: boolean): Ending {
  const message = error instanceof Error ? error.message : String(error);
  if (timedOut) return { kind: "failed", type: "timeout", message };
  return { kind: "failed", type: error instanceof RequestFailure ? error.type : "client", message };
}

function toAnswer(
  planned: Planned,
  reader: AnswerReader,
  ending: Ending,
  { start, due, sent }: { start: number; due: number; sent: number },
): Answer {
  const { promptTokens, cachedTokens, completionTokens, finishReason } = reader;
  // An answer whose end nobody announced may be any part of one.
  const cutOff = ending.kind === "completed" && finishReason === undefined;
  return {
    index: planned.index,
    due,
    sent: sent - start,
    ended: performance.now() - start,
    pieces: reader.pieces.map((at) => at - start),
    ending: cutOff ? { kind: "failed", type: "no_finish_reason", message: "The stream had no finish_reason." } : ending,
    finishReason,
    promptTokens,
    cachedTokens,
    completionTokens,
    wantedTokens: planned.outputTokens,
  };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

function place(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    waiting.push(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
  });
}
