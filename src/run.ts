import { AbortError, EngineClosedError, fromNative, InternalError, type TokenloopError } from "./errors.js";
import type { EventRouter, RequestSink } from "./events.js";
import {
  type NativeEngine,
  type NativeFinishReason,
  type NativeRequest,
  type NativeResult,
  recordWeight,
} from "./native.js";
import type { ChunkBuilder } from "./openai/chunks.js";
import type { ChatCompletionChunk, TokenLogprob } from "./openai/types.js";
import { DeliveryQueue } from "./queue.js";

/** Why the façade asked the engine to end a request. The first reason stays. */
type Stop = { kind: "abort"; reason: unknown } | { kind: "leave" } | { kind: "close" };

/**
 * One request from submit to the addon's last event. Nothing that ends it settles before that last event, because only
 * then its KV cells are free.
 *
 * | state \ event | abort | consumer leaves | engine closes | native end | native failure |
 * |---|---|---|---|---|---|
 * | waiting or running | cancel, drop text | cancel, drop text | (addon cancels) | finish chunk, done | error |
 * | stopping: abort | nothing | nothing | nothing | AbortError | AbortError |
 * | stopping: leave | nothing | nothing | nothing | done | done |
 * | stopping: close | nothing | drop text | nothing | EngineClosedError if cut short | error |
 * | ended | nothing | drop what is unread | nothing | (cannot happen) | (cannot happen) |
 */
export class Run implements RequestSink {
  readonly #native: NativeEngine;
  readonly #chunks: ChunkBuilder;
  readonly #queue = new DeliveryQueue<ChatCompletionChunk>((weight) => this.#took(weight));
  /** Weight of records that have come and of which nothing is in the queue yet. */
  #unqueued = 0;
  /** Weight that the consumer has taken and the addon does not know of. */
  #untold = 0;
  /** Weight from which on the addon is told: a part of what it lets wait, so that it is never far behind. */
  readonly #tellAt: number;
  readonly #signals: AbortSignal[];
  readonly #whenEnded: (() => void)[] = [];
  #id = 0;
  #stop: Stop | undefined;
  #ended = false;
  /** Choices whose first chunk is out. */
  readonly #announced = new Set<number>();
  readonly #results: NativeResult[] = [];
  /** Of tokens whose text has not come yet, by choice. */
  readonly #logprobs = new Map<number, TokenLogprob[]>();
  /** Choices that have not had their last event. */
  #open: number;
  #failure: TokenloopError | undefined;
  /** The engine closed before a choice was whole. */
  #cutShort = false;
  #begin: { resolve(): void; reject(error: unknown): void } | undefined;

  /** Aborting it aborts the request, as the caller's own signal does. */
  readonly controller = new AbortController();
  /** Settles with the first event: resolves once the prompt is accepted, rejects when there will be no answer. */
  readonly started: Promise<void>;

  /**
   * @throws {AbortError} at once, with nothing submitted, when the signal is aborted already.
   * @throws {TokenloopError} what the engine refuses: RateLimitError, EngineClosedError, BadRequestError.
   */
  constructor(
    native: NativeEngine,
    router: EventRouter,
    request: NativeRequest,
    chunks: ChunkBuilder,
    streamBufferBytes: number,
    signal: AbortSignal | undefined,
  ) {
    if (signal?.aborted) throw new AbortError(signal.reason);
    this.#native = native;
    this.#chunks = chunks;
    this.#tellAt = streamBufferBytes / 4;
    this.#signals = signal === undefined ? [this.controller.signal] : [this.controller.signal, signal];
    try {
      this.#id = native.submit(request);
    } catch (error) {
      throw fromNative(error);
    }
    this.#open = request.n;
    router.add(this.#id, this, request.n);
    this.started = new Promise((resolve, reject) => {
      this.#begin = { resolve, reject };
    });
    for (const each of this.#signals) each.addEventListener("abort", this.#onAbort);
  }

  next(): Promise<IteratorResult<ChatCompletionChunk, undefined>> {
    return this.#queue.next();
  }

  takeReady(): ChatCompletionChunk[] {
    return this.#queue.takeReady();
  }

  /** The consumer goes: ends the request quietly. Resolves after the last event. */
  leave(): Promise<void> {
    this.#queue.clear();
    if (this.#ended) return Promise.resolve();
    if (!this.#discards()) {
      this.#stop = { kind: "leave" };
      this.#cancel();
    }
    // The cancel may have failed, which ends it too.
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenEnded.push(resolve);
    });
  }

  /** The engine is closing and will cancel this request by itself. */
  engineCloses(): void {
    this.#stop ??= { kind: "close" };
  }

  prompt(choice: number): void {
    if (this.#stop === undefined) this.#announce(choice);
  }

  delta(choice: number, text: string): void {
    if (this.#discards()) return;
    this.#unqueued += recordWeight(text.length);
    if (text === "") {
      this.#took(this.#unqueued);
      this.#unqueued = 0;
      return;
    }
    this.#announce(choice);
    this.#push(this.#chunks.content(choice, text, this.#takeLogprobs(choice)));
  }

  logprobs(choice: number, entry: TokenLogprob, units: number): void {
    if (this.#discards()) return;
    this.#unqueued += recordWeight(units);
    const entries = this.#logprobs.get(choice);
    if (entries === undefined) this.#logprobs.set(choice, [entry]);
    else entries.push(entry);
  }

  finished(choice: number, reason: NativeFinishReason, result: NativeResult): void {
    if (!this.#discards() && reason === "cancelled" && this.#stop === undefined) {
      this.#failure ??= new InternalError("The engine cancelled the request.", "cancelled");
    } else if (!this.#discards() && reason !== "cancelled") {
      this.#announce(choice);
      this.#push(this.#chunks.finish(choice, reason, result, this.#takeLogprobs(choice)));
      this.#results.push(result);
    } else {
      this.#cutShort = true;
    }
    this.#close();
  }

  failed(_choice: number, error: TokenloopError): void {
    // One answer that fails takes the others with it: there is one response.
    if (this.#failure === undefined && this.#open > 1 && this.#stop === undefined) this.#cancel();
    this.#failure ??= error;
    this.#close();
  }

  /** A chunk, with the weight of everything that it may have been made of. */
  #push(chunk: ChatCompletionChunk): void {
    const weight = this.#unqueued;
    this.#unqueued = 0;
    this.#queue.push(chunk, weight);
  }

  #took(weight: number): void {
    if (this.#ended) return;
    this.#untold += weight;
    if (this.#untold < this.#tellAt) return;
    this.#native.take(this.#id, this.#untold);
    this.#untold = 0;
  }

  #takeLogprobs(choice: number): TokenLogprob[] | undefined {
    if (this.#logprobs.size === 0) return undefined;
    const entries = this.#logprobs.get(choice);
    this.#logprobs.delete(choice);
    return entries;
  }

  /** One more choice has had its last event. */
  #close(): void {
    if (--this.#open > 0) return;
    if (this.#discards()) {
      this.#end(this.#stopError());
    } else if (this.#failure !== undefined) {
      this.#end(this.#failure);
    } else if (this.#cutShort) {
      this.#end(this.#stopError());
    } else {
      for (const chunk of this.#chunks.usage(this.#results)) this.#queue.push(chunk);
      this.#end(undefined);
    }
  }

  /** First chunk of the choice out, and create() returns. */
  #announce(choice: number): void {
    if (this.#announced.has(choice)) return;
    this.#announced.add(choice);
    this.#queue.push(this.#chunks.role(choice));
    this.#begin?.resolve();
  }

  readonly #onAbort = (event: Event): void => {
    if (this.#ended || this.#stop !== undefined) return;
    // Not instanceof: a signal may come from another realm.
    const { reason } = (event.target ?? {}) as { reason?: unknown };
    this.#stop = { kind: "abort", reason };
    this.#queue.clear();
    this.#cancel();
  };

  #cancel(): void {
    try {
      this.#native.cancel(this.#id);
    } catch (error) {
      // Without a cancel there may be no last event to wait for.
      this.#failure ??= fromNative(error);
      this.#open = 1;
      this.#close();
    }
  }

  /** Whether nobody wants the text any more. */
  #discards(): boolean {
    return this.#stop !== undefined && this.#stop.kind !== "close";
  }

  #stopError(): TokenloopError | undefined {
    if (this.#stop?.kind === "abort") return new AbortError(this.#stop.reason);
    if (this.#stop?.kind === "close") return new EngineClosedError("The engine was closed while the request ran.");
    return undefined;
  }

  #end(error: TokenloopError | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#onAbort);
    if (this.#announced.size === 0 && error !== undefined) {
      // create() rejects with it; the iterator was never handed out.
      this.#queue.close();
      this.#begin?.reject(error);
    } else {
      this.#queue.close(error);
      this.#begin?.resolve();
    }
    for (const resolve of this.#whenEnded.splice(0)) resolve();
  }
}
