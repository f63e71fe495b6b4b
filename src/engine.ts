import { abortable } from "./abortable.js";
import { AbortError, BadRequestError, EngineClosedError, fromNative } from "./errors.js";
import { estimateMemory, type MemoryEstimate } from "./estimate.js";
import type { Choice } from "./fit.js";
import type { HandlerOptions } from "./http/access.js";
import { createHandler, type FetchHandler, type HandlerEngine } from "./http/handler.js";
import { type EngineParts, loadParts } from "./load.js";
import type { LoadOptions } from "./load-options.js";
import {
  loadNative,
  type NativeAddon,
  type NativeBuildInfo,
  type NativeModelInfo,
  type NativePieces,
  type NativePrefix,
  type NativeRequest,
  type NativeStats,
} from "./native.js";
import { ChunkBuilder } from "./openai/chunks.js";
import { CompletionStream, foldCompletion } from "./openai/completion-chunks.js";
import type {
  Completion,
  CompletionChunk,
  CompletionCreateParams,
  CompletionCreateParamsNonStreaming,
  CompletionCreateParamsStreaming,
} from "./openai/completion-params.js";
import { validateCompletion } from "./openai/completion-request.js";
import { foldChunks } from "./openai/fold.js";
import { toNativeRequest } from "./openai/map.js";
import type {
  ChatCompletionCreateParams,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionCreateParamsStreaming,
} from "./openai/params.js";
import type { LogitBias } from "./openai/sampling.js";
import type { ChatCompletion, ChatCompletionMessageParam } from "./openai/types.js";
import { type ValidRequest, validateRequest } from "./openai/validate.js";
import { findPackageRoot } from "./package-root.js";
import { Run } from "./run.js";
import { SchemaCompiler } from "./schema/compiler.js";
import { ChatCompletionStream } from "./stream.js";

/** The loaded model, and what it was loaded with. */
export interface EngineInfo extends NativeModelInfo {
  /** Id that answers carry. */
  id: string;
  /** Path of the GGUF file. */
  path: string;
  /** When it was loaded: Unix time in seconds. */
  created: number;
  /** What was chosen for options given as "auto", and why. */
  choices: Choice[];
  /** llama.cpp's build, devices and instruction sets. */
  build: NativeBuildInfo;
}

export interface RequestOptions {
  /** Aborting it ends the request with one AbortError, once the engine has let go of it. */
  signal?: AbortSignal | null | undefined;
  /** @internal Strings that end the answer besides those of the request, of which there may be four only. */
  stop?: readonly string[] | undefined;
}

/** The part of OpenAI's client that an engine offers under the same names. */
export interface Chat {
  readonly completions: Completions;
}

/**
 * Creates a chat completion. With `stream: true` it resolves once the prompt is accepted, with the chunks to come;
 * without, it resolves with the whole answer.
 *
 * Errors: BadRequestError (400, `param` names the field; code "context_length_exceeded" when the prompt does not fit),
 * RateLimitError (429, the queue is full), EngineClosedError (503), AbortError (the signal), InternalError (500).
 */
export interface Completions {
  create(params: ChatCompletionCreateParamsNonStreaming, options?: RequestOptions): Promise<ChatCompletion>;
  create(params: ChatCompletionCreateParamsStreaming, options?: RequestOptions): Promise<ChatCompletionStream>;
  create(params: ChatCompletionCreateParams, options?: RequestOptions): Promise<ChatCompletion | ChatCompletionStream>;
}

/** Creates a text completion, OpenAI's older kind, from a prompt as it is. Errors: as of Completions. */
export interface TextCompletions {
  create(params: CompletionCreateParamsNonStreaming, options?: RequestOptions): Promise<Completion>;
  create(params: CompletionCreateParamsStreaming, options?: RequestOptions): Promise<AsyncIterable<CompletionChunk>>;
  create(
    params: CompletionCreateParams,
    options?: RequestOptions,
  ): Promise<Completion | AsyncIterable<CompletionChunk>>;
}

/** One loaded model and its token loop, inside this process. */
export class Engine {
  readonly chat: Chat;
  readonly completions: TextCompletions;
  readonly info: EngineInfo;
  /**
   * A Web-standard handler (Request in, Response out) that can also stand in for `fetch` in any OpenAI client. Bound:
   * it can be passed around alone.
   */
  readonly fetch: FetchHandler;

  readonly #parts: EngineParts;
  readonly #fingerprint: string;
  readonly #schemas = new SchemaCompiler();
  #draining: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** @internal Engines come from `Engine.load`. */
  constructor(parts: EngineParts) {
    this.#parts = parts;
    const { native, build, modelId, path, choices } = parts;
    this.info = { ...native.info, id: modelId, path, created: Math.floor(Date.now() / 1000), choices, build };
    const version = findPackageRoot()?.version ?? "0.0.0";
    this.#fingerprint = `tokenloop-${version}-llama.cpp-b${build.llamaBuild}`;

    const create = (params: ChatCompletionCreateParams, options?: RequestOptions) => this.#create(params, options);
    // One function under three signatures: which one holds is decided by `stream`, as in #create.
    this.chat = { completions: { create: create as Completions["create"] } };
    const complete = (params: CompletionCreateParams, options?: RequestOptions) => this.#complete(params, options);
    this.completions = { create: complete as TextCompletions["create"] };
    this.fetch = this.handler();
  }

  /**
   * A handler as `fetch`, with keys, CORS or another body limit.
   *
   * @throws {BadRequestError} code "invalid_option", `param` names it.
   */
  handler(options: HandlerOptions = {}): FetchHandler {
    return createHandler(this.handled(), options);
  }

  /** @internal What a handler needs of it. */
  handled(): HandlerEngine {
    return {
      models: () => [this.info],
      findModel: (id) => (id === this.info.id ? this.info : undefined),
      chat: (body, signal) => this.#create(body, { signal }),
      single: {
        complete: (body, signal) => this.#complete(body, { signal }),
        tokenize: (text, addSpecial, parseSpecial) => this.#tokenize(text, addSpecial, parseSpecial),
        pieces: (tokens) => this.#pieces(tokens),
        applyTemplate: (body) => this.#applyTemplate(body),
        stats: () => this.stats(),
      },
      state: () => (this.#closing !== undefined ? "closed" : this.#draining !== undefined ? "draining" : "open"),
    };
  }

  /**
   * Loads a model, off the JavaScript thread.
   *
   * Errors: BadRequestError (an option is unknown or out of range, `param` names it), NativeLoadError (the addon is
   * missing), ModelLoadError (the file is missing or no model; `path` names it), AbortError (the signal).
   */
  static load(options: LoadOptions): Promise<Engine> {
    return loadEngine(loadNative, options);
  }

  /**
   * What a model and its context would take with these options, in bytes, as llama.cpp itself reckons it: nothing is
   * loaded. Takes tens of milliseconds, up to a second for a large vocabulary, off the JavaScript thread.
   *
   * Errors: as of `load`.
   */
  static estimate(options: LoadOptions): Promise<MemoryEstimate> {
    return estimateMemory(loadNative, options);
  }

  /** Counters of the token loop, now. @throws {EngineClosedError} after close(). */
  stats(): NativeStats {
    this.#assertOpen();
    return this.#native(() => this.#parts.native.stats());
  }

  /** Tokens of a text, without special ones. @throws {EngineClosedError} after close(). */
  tokenize(text: string): Promise<Int32Array> {
    return this.#tokenize(text, false, false);
  }

  /**
   * The text of tokens; half characters show as U+FFFD.
   *
   * @throws {BadRequestError} param "tokens": the vocabulary does not have one of them.
   * @throws {EngineClosedError} after close().
   */
  async detokenize(tokens: Int32Array | readonly number[]): Promise<string> {
    const { bytes } = await this.#pieces(Int32Array.from(tokens));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  /**
   * The prompt that the chat template makes of these messages.
   *
   * @throws {BadRequestError} param "messages".
   * @throws {EngineClosedError} after close().
   */
  applyTemplate(messages: ChatCompletionMessageParam[]): Promise<string> {
    return this.#applyTemplate({ messages });
  }

  /** Of a whole request. */
  async #applyTemplate(body: unknown): Promise<string> {
    this.#assertOpen();
    const request = validateRequest(body);
    return this.#settle(this.#native(() => this.#parts.native.applyTemplate(JSON.stringify(request.messages))));
  }

  /**
   * Saves what is cached under a `prompt_cache_key` ("": of requests without one) to a file, so that a prompt need not be
   * computed again after a restart. Prompts that begin alike share that part in the file too. Running requests stand
   * still while the cells are copied: about 1 ms per megabyte.
   *
   * The file belongs to this model file and this build of llama.cpp. It is as private as the prompts in it.
   *
   * @throws {NotFoundError} code "prefix_not_found": nothing is cached under this key.
   * @throws {BadRequestError} code "unsupported_model": recurrent, hybrid and sliding-window models, or no prefixCache.
   * @throws {InternalError} code "file_not_written".
   * @throws {EngineClosedError} after close().
   */
  async savePrefix(key: string, path: string): Promise<NativePrefix> {
    this.#assertOpen();
    return this.#settle(this.#native(() => this.#parts.native.savePrefix(key, path)));
  }

  /**
   * Fills the cache under a `prompt_cache_key` from such a file. Later requests find it as if it had been computed here.
   *
   * @throws {NotFoundError} code "file_not_found".
   * @throws {BadRequestError} code "prefix_file_corrupt", "prefix_file_foreign" (another model, build or KV layout),
   *   "prefix_too_large" (it does not fit beside what runs) or "unsupported_model".
   * @throws {EngineClosedError} after close().
   */
  async restorePrefix(key: string, path: string): Promise<NativePrefix> {
    this.#assertOpen();
    return this.#settle(this.#native(() => this.#parts.native.restorePrefix(key, path)));
  }

  /**
   * Takes no more requests (they get an EngineClosedError with code "engine_draining") and resolves when those that wait
   * or run are done, or ended by close(). Idempotent: later calls return the same promise. close() is still to be called.
   */
  drain(): Promise<void> {
    this.#draining ??= this.#parts.router.whenEmpty();
    return this.#draining;
  }

  /**
   * Ends what runs (each request gets an EngineClosedError), stops the token loop and frees the model. Idempotent:
   * later calls return the same promise.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { native, router } = this.#parts;
    for (const sink of router.sinks()) if (sink instanceof Run) sink.engineCloses();
    try {
      await Promise.all([native.close(), this.#schemas.close()]);
    } catch (error) {
      throw fromNative(error);
    } finally {
      // The addon has given each request its last event by now; nobody may hang, should one be missing.
      router.failAll(new EngineClosedError("The engine was closed while the request ran."));
    }
  }

  async #create(params: unknown, options: RequestOptions = {}): Promise<ChatCompletion | ChatCompletionStream> {
    const signal = this.#begin(options);
    const request = validateRequest(params);
    request.stop.push(...(options.stop ?? []).filter((stop) => !request.stop.includes(stop)));
    const { native, router, options: options_ } = this.#parts;
    const chunks = new ChunkBuilder({
      model: this.info.id,
      fingerprint: this.#fingerprint,
      includeUsage: request.includeUsage || !request.stream,
    });
    const made = this.#grammar(request);
    // Only what must wait waits: requests are queued in the order of their calls.
    const grammar = typeof made === "string" ? made : await abortable(made, signal);
    if (request.logitBias.texts.length > 0) await abortable(this.#resolveBias(request.logitBias), signal);
    this.#assertTakesRequests();
    const nativeRequest = toNativeRequest(request, this.info.vocabSize, grammar);
    const run = new Run(native, router, nativeRequest, chunks, options_.streamBufferBytes, signal);
    await run.started;
    const stream = new ChatCompletionStream(run);
    return request.stream ? stream : foldChunks(stream);
  }

  async #complete(params: unknown, options: RequestOptions = {}): Promise<Completion | CompletionStream> {
    const signal = this.#begin(options);
    const { prompts, echo, request } = validateCompletion(params);
    const made = this.#grammar(request);
    const grammar = typeof made === "string" ? made : await abortable(made, signal);
    if (request.logitBias.texts.length > 0) await abortable(this.#resolveBias(request.logitBias), signal);
    // What a token id stands for is known before anything runs.
    const echoes = echo
      ? await Promise.all(prompts.map((prompt) => (typeof prompt === "string" ? prompt : this.detokenize(prompt))))
      : [];
    this.#assertTakesRequests();
    const { messages: _, ...native } = toNativeRequest(request, this.info.vocabSize, grammar);
    const runs = await this.#startAll(
      prompts.map((prompt) => ({
        ...native,
        ...(typeof prompt === "string" ? { prompt } : { promptTokens: prompt }),
      })),
      signal,
    );
    const sources = runs.map((run, i) => ({ stream: new ChatCompletionStream(run), echo: echoes[i] ?? "" }));
    const stream = new CompletionStream(sources, {
      n: request.n,
      topLogprobs: request.logprobs < 0 ? undefined : request.logprobs,
      includeUsage: request.includeUsage || !request.stream,
    });
    return request.stream ? stream : foldCompletion(stream);
  }

  /** All of them or none: what has begun when one is refused is left again. */
  async #startAll(requests: readonly NativeRequest[], signal: AbortSignal | undefined): Promise<Run[]> {
    const { native, router, options } = this.#parts;
    const runs: Run[] = [];
    try {
      for (const request of requests) {
        const chunks = new ChunkBuilder({ model: this.info.id, fingerprint: this.#fingerprint, includeUsage: true });
        runs.push(new Run(native, router, request, chunks, options.streamBufferBytes, signal));
      }
      await Promise.all(runs.map(({ started }) => started));
      return runs;
    } catch (error) {
      // The first failure is thrown below. Nobody waits for the others, which would be unhandled rejections.
      for (const { started } of runs) started.catch(() => undefined);
      await Promise.all(runs.map((run) => run.leave()));
      throw error;
    }
  }

  /** The caller's signal, if a request may begin. */
  #begin({ signal }: RequestOptions): AbortSignal | undefined {
    // Checked before anything is submitted. Not instanceof: a signal may come from another realm.
    if (signal && (typeof signal !== "object" || typeof signal.addEventListener !== "function")) {
      throw new BadRequestError("Invalid option 'signal': expected an AbortSignal.", "signal", "invalid_option");
    }
    if (signal?.aborted) throw new AbortError(signal.reason);
    this.#assertTakesRequests();
    return signal ?? undefined;
  }

  #grammar({ jsonFormat, grammar }: ValidRequest): string | Promise<string> {
    return jsonFormat === undefined ? grammar : this.#schemas.grammar(jsonFormat);
  }

  /** A text stands for each of its tokens. */
  async #resolveBias(bias: LogitBias): Promise<void> {
    const resolved = bias.texts.map(async ([text, value]) => {
      const tokens = await this.#tokenize(text, false, false);
      return [...tokens].map((id): [number, number] => [id, value]);
    });
    bias.ids.push(...(await Promise.all(resolved)).flat());
  }

  async #tokenize(text: string, addSpecial: boolean, parseSpecial: boolean): Promise<Int32Array> {
    this.#assertOpen();
    return this.#settle(this.#native(() => this.#parts.native.tokenize(text, addSpecial, parseSpecial)));
  }

  async #pieces(tokens: Int32Array): Promise<NativePieces> {
    this.#assertOpen();
    return this.#settle(this.#native(() => this.#parts.native.pieces(tokens)));
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new EngineClosedError();
  }

  #assertTakesRequests(): void {
    this.#assertOpen();
    if (this.#draining === undefined) return;
    throw new EngineClosedError("The engine takes no more requests: it is draining.", "engine_draining");
  }

  #native<Result>(call: () => Result): Result {
    try {
      return call();
    } catch (error) {
      throw fromNative(error);
    }
  }

  async #settle<Result>(promise: Promise<Result>): Promise<Result> {
    try {
      return await promise;
    } catch (error) {
      throw fromNative(error);
    }
  }
}

/** @internal `Engine.load` through an addon of the caller's choice, for tests. */
export async function loadEngine(
  addon: () => NativeAddon,
  options: LoadOptions,
  check?: Parameters<typeof loadParts>[2],
): Promise<Engine> {
  return new Engine(await loadParts(addon, options, check));
}
