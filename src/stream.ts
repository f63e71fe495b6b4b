import { TokenloopError } from "./errors.js";
import type { ChatCompletionChunk } from "./openai/types.js";

/** Where a stream gets its chunks from. */
export interface ChunkSource {
  readonly controller: AbortController;
  next(): Promise<IteratorResult<ChatCompletionChunk, undefined>>;
  takeReady(): ChatCompletionChunk[];
  leave(): Promise<void>;
}

/**
 * The chunks of one streamed answer, to be read once with `for await`.
 *
 * Leaving the loop early cancels the request quietly and waits until its memory is free. An abort, through the caller's
 * signal or `controller`, makes the iterator reject with one AbortError, also after that.
 */
export class ChatCompletionStream implements AsyncIterable<ChatCompletionChunk> {
  readonly #source: ChunkSource;
  #consumed = false;

  /** @internal Streams come from `engine.chat.completions.create`. */
  constructor(source: ChunkSource) {
    this.#source = source;
  }

  /** `controller.abort()` ends the request as the caller's signal does. */
  get controller(): AbortController {
    return this.#source.controller;
  }

  /** @throws {TokenloopError} code "stream_consumed" on the second call. */
  [Symbol.asyncIterator](): AsyncIterableIterator<ChatCompletionChunk, undefined> {
    if (this.#consumed) {
      throw new TokenloopError("A stream can be read only once.", {
        code: "stream_consumed",
        status: 500,
        type: "invalid_request_error",
      });
    }
    this.#consumed = true;
    return new ChunkIterator(this.#source);
  }

  /** @internal Chunks that are ready now, for consumers that write several at once. */
  takeReady(): ChatCompletionChunk[] {
    return this.#source.takeReady();
  }
}

class ChunkIterator implements AsyncIterableIterator<ChatCompletionChunk, undefined> {
  readonly #source: ChunkSource;

  constructor(source: ChunkSource) {
    this.#source = source;
  }

  next(): Promise<IteratorResult<ChatCompletionChunk, undefined>> {
    return this.#source.next();
  }

  async return(): Promise<IteratorResult<ChatCompletionChunk, undefined>> {
    await this.#source.leave();
    return { done: true, value: undefined };
  }

  async throw(error?: unknown): Promise<IteratorResult<ChatCompletionChunk, undefined>> {
    await this.#source.leave();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
