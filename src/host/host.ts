import type { Chat, Completions, RequestOptions } from "../engine.js";
import { Engine } from "../engine.js";
import { AbortError, BadRequestError, EngineClosedError, InternalError, NotFoundError } from "../errors.js";
import type { HandlerOptions } from "../http/access.js";
import { createHandler, type FetchHandler } from "../http/handler.js";
import type { LoadOptions } from "../load-options.js";
import { isObject } from "../openai/plain.js";
import type { ChatCompletion } from "../openai/types.js";
import type { ChatCompletionStream } from "../stream.js";
import { didYouMean } from "../suggest.js";
import { answer } from "./answer.js";
import { type HostParts, handledBy } from "./handled.js";
import { mergeRequest } from "./merge.js";
import type { HostEvent, HostRuntime, ModelStatus } from "./runtime.js";
import { forRequest, identityOf, leastRecent, ModelSlot, unlessAborted, type Waiter } from "./slot.js";
import { type HostConfig, type HostSpec, validateHostConfig } from "./spec.js";

/**
 * Several models behind one handler. A model is loaded with its first request, and unloaded when it was idle for as long as
 * it says, or when another needs the room: the one that was used longest ago, an idle one before a busy one. A running
 * request is never cut: a model that must go takes no more requests, and goes when its last one is done. Requests for it
 * wait, and it is loaded again for them in their turn.
 */
export class ModelHost {
  readonly chat: Chat;
  /** As `Engine.fetch`; `model` in a request says which one answers. */
  readonly fetch: FetchHandler;
  readonly #runtime: HostRuntime;
  #spec: HostSpec;
  /** In the order of the configuration. */
  #slots: ModelSlot[];
  /** By name and alias. */
  #names: Map<string, ModelSlot>;
  /** Slots that are no longer configured and still hold memory. */
  readonly #retiring = new Map<ModelSlot, Promise<void>>();
  /** Loads and unloads, one after another: each decides over all memory. */
  #turn: Promise<unknown> = Promise.resolve();
  #uses = 0;
  #draining = false;
  #closing: Promise<void> | undefined;
  /** Ends a load when the host closes. */
  readonly #closed = new AbortController();

  private constructor(spec: HostSpec, slots: ModelSlot[], runtime: HostRuntime) {
    this.#spec = spec;
    this.#slots = slots;
    this.#names = namesOf(slots);
    this.#runtime = runtime;
    const create = (body: unknown, options?: RequestOptions) => this.#create(body, options?.signal ?? undefined);
    this.chat = { completions: { create: create as Completions["create"] } };
    this.fetch = this.handler();
  }

  /** As `Engine.handler`. Routes that name no model are the default model's; statistics are those of all together. */
  handler(options: HandlerOptions = {}): FetchHandler {
    const parts: HostParts = {
      slots: () => this.#slots,
      loaded: () => this.#all().flatMap(({ state, engine }) => (state === "loaded" && engine ? [engine] : [])),
      named: (id) => this.#names.get(id),
      create: (body, signal) => this.#create(body, signal),
      using: (model, signal, use) => this.#using(this.#find(model), signal, use),
      state: () => (this.#closing !== undefined ? "closed" : this.#draining ? "draining" : "open"),
    };
    return createHandler(handledBy(parts), options);
  }

  /**
   * Resolves when the models that say `preload` are loaded.
   *
   * @throws {ConfigError} `at` leads to what is wrong.
   */
  static async create(config: HostConfig, runtime: Partial<HostRuntime> = {}): Promise<ModelHost> {
    const spec = validateHostConfig(config);
    const slots = await Promise.all(spec.models.map(async (model) => new ModelSlot(model, await identityOf(model))));
    const host = new ModelHost(spec, slots, { load: Engine.load, estimate: Engine.estimate, ...runtime });
    try {
      await host.#preload();
    } catch (error) {
      await host.close();
      throw error;
    }
    return host;
  }

  /** All models, in the order of the configuration. */
  status(): ModelStatus[] {
    return this.#slots.map((slot) => ({
      name: slot.spec.name,
      state: slot.state,
      requests: slot.requests,
      bytes: slot.bytes,
    }));
  }

  /** @internal The engines that are there now. @throws {EngineClosedError} after close(). */
  loaded(): { name: string; engine: Engine }[] {
    if (this.#closing !== undefined) throw new EngineClosedError();
    return this.#slots.flatMap(({ spec, engine, state }) =>
      engine === undefined || state !== "loaded" ? [] : { name: spec.name, engine },
    );
  }

  /** Loads a model ahead of its first request. @throws {NotFoundError} there is none of this name. */
  async load(name: string): Promise<void> {
    const slot = this.#find(name);
    await this.#acquire(slot, undefined);
    this.#done(slot);
  }

  /** Unloads a model when its requests are done. The next request loads it again. */
  async unload(name: string): Promise<void> {
    const slot = this.#find(name);
    await this.#inTurn(() => this.#unload(slot, "asked for"));
  }

  /**
   * Takes another configuration. Requests that wait or run go on as they are; models whose file and options are the same
   * stay loaded, and the others go when their requests are done. Where the configuration is wrong, nothing changes.
   *
   * @throws {ConfigError}
   */
  async reload(config: HostConfig): Promise<void> {
    this.#assertOpen();
    const spec = validateHostConfig(config);
    const identities = await Promise.all(spec.models.map(identityOf));
    const old = new Map(this.#slots.map((slot) => [slot.identity, slot]));
    const slots = spec.models.map((model, i) => {
      const identity = identities[i] ?? "";
      const same = old.get(identity);
      if (same === undefined) return new ModelSlot(model, identity);
      old.delete(identity);
      same.spec = model;
      this.#watch(same);
      return same;
    });
    this.#spec = spec;
    this.#slots = slots;
    this.#names = namesOf(slots);
    for (const slot of old.values()) this.#retire(slot);
    // The configuration holds from here on: a model that fails to load is an event, and an error of its requests.
    await this.#preload().catch(() => undefined);
  }

  /** Takes no more requests and resolves when those that wait or run are done. close() is still to be called. */
  async drain(): Promise<void> {
    this.#draining = true;
    await Promise.all(this.#all().map((slot) => slot.whenUnused()));
    await Promise.all(this.#all().map((slot) => slot.engine?.drain()));
  }

  /** Ends what runs and unloads everything. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      for (const slot of this.#all()) clearTimeout(slot.idleTimer);
      const close = async () => {
        await Promise.all(this.#all().map((slot) => slot.engine?.close()));
        for (const slot of this.#all()) slot.engine = undefined;
      };
      this.#closed.abort();
      // What runs ends now, and what is being loaded in a moment.
      await close();
      await this.#turn;
      await close();
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #all(): ModelSlot[] {
    return [...this.#slots, ...this.#retiring.keys()];
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new EngineClosedError("The host is closed.");
  }

  async #create(body: unknown, signal: AbortSignal | undefined): Promise<ChatCompletion | ChatCompletionStream> {
    if (signal?.aborted) throw new AbortError(signal.reason);
    this.#assertOpen();
    const slot = isObject(body) ? this.#find(body.model) : this.#find(undefined);
    const { spec } = slot;
    const merged = mergeRequest(body, spec);
    return this.#using(slot, signal, (engine) => answer(engine, spec, merged, signal));
  }

  async #using<Result>(
    slot: ModelSlot,
    signal: AbortSignal | undefined,
    use: (engine: Engine) => Promise<Result>,
  ): Promise<Result> {
    if (this.#draining)
      throw new EngineClosedError("The host takes no more requests: it is draining.", "engine_draining");
    const engine = await this.#acquire(slot, signal).catch((error: unknown) => {
      throw forRequest(error, slot.spec.name);
    });
    try {
      return await use(engine);
    } finally {
      this.#done(slot);
    }
  }

  /** The model of a request's name; of a request without one the default. */
  #find(name: unknown): ModelSlot {
    if (name !== undefined && name !== null && typeof name !== "string") {
      throw new BadRequestError("'model' must be a string.", "model", "invalid_type");
    }
    const slot = this.#names.get(name || this.#spec.defaultModel.name);
    if (slot !== undefined) return slot;
    const hint = didYouMean(String(name), this.#names.keys());
    throw new NotFoundError(
      `The model '${String(name).slice(0, 200)}' does not exist.${hint}`,
      "model_not_found",
      "model",
    );
  }

  /** The engine, loaded if it is not. Each call is followed by one of #done. */
  async #acquire(slot: ModelSlot, signal: AbortSignal | undefined): Promise<Engine> {
    for (;;) {
      this.#assertOpen();
      if (slot.engine !== undefined && slot.unloading === undefined) {
        slot.uses++;
        this.#touch(slot);
        return slot.engine;
      }
      // A slot that was retired while a request waited for it: whoever has its name now answers.
      if (slot.retired) return this.#acquire(this.#find(slot.spec.name), signal);
      const engine = await this.#wait(slot, signal);
      if (engine !== undefined) return engine;
    }
  }

  /**
   * Waits for the slot to be loaded. The load itself hands the engine to those that wait: the next in turn may want its
   * room at once.
   */
  async #wait(slot: ModelSlot, signal: AbortSignal | undefined): Promise<Engine | undefined> {
    slot.loading ??= this.#inTurn(() => this.#load(slot)).finally(() => {
      slot.loading = undefined;
    });
    // Those that wait hear of a failure below; when all have left, it would be an unhandled rejection.
    slot.loading.catch(() => undefined);
    const waiter: Waiter = { engine: undefined };
    slot.waiters.add(waiter);
    try {
      await unlessAborted(slot.loading, signal);
    } catch (error) {
      if (waiter.engine !== undefined) this.#done(slot);
      throw error;
    } finally {
      slot.waiters.delete(waiter);
    }
    return waiter.engine;
  }

  #done(slot: ModelSlot): void {
    slot.release();
    this.#touch(slot);
    this.#watch(slot);
  }

  #touch(slot: ModelSlot): void {
    slot.lastUse = ++this.#uses;
    slot.lastUseMs = Date.now();
  }

  /** Runs after what was asked for before. */
  #inTurn(task: () => Promise<void>): Promise<void> {
    const run = this.#turn.then(task);
    // Who asked hears of a failure; the next one has its turn all the same.
    this.#turn = run.catch(() => undefined);
    return run;
  }

  /** All of them, whatever becomes of one. @throws what the first that failed rejected with. */
  async #preload(): Promise<void> {
    const wanted = this.#slots.filter(({ spec }) => spec.preload);
    const loads = wanted.map((slot) => this.#acquire(slot, undefined).then(() => this.#done(slot)));
    const failed = (await Promise.allSettled(loads)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
  }

  async #load(slot: ModelSlot): Promise<void> {
    this.#assertOpen();
    if (slot.engine === undefined && !slot.retired) await this.#loadEngine(slot);
    const { engine } = slot;
    if (engine === undefined) return;
    for (const waiter of slot.waiters) {
      waiter.engine = engine;
      slot.uses++;
    }
    slot.waiters.clear();
    this.#touch(slot);
    this.#watch(slot);
  }

  async #loadEngine(slot: ModelSlot): Promise<void> {
    const { name, path, options } = slot.spec;
    const loadOptions = { ...options, model: path, modelId: name };
    const start = performance.now();
    try {
      await this.#makeRoom(slot, loadOptions);
      this.#emit({ type: "loading", model: name });
      slot.engine = await this.#runtime.load({ ...loadOptions, signal: this.#closed.signal });
    } catch (error) {
      this.#emit({ type: "failed", model: name, reason: error instanceof Error ? error.message : String(error) });
      throw error;
    }
    this.#emit({ type: "loaded", model: name, ms: performance.now() - start });
  }

  async #makeRoom(slot: ModelSlot, options: LoadOptions): Promise<void> {
    const { memoryBudget, maxLoaded } = this.#spec;
    if (memoryBudget > 0) {
      slot.bytes = (await this.#runtime.estimate(options)).bytes;
      if (slot.bytes > memoryBudget) {
        const message = `The model '${slot.spec.name}' needs ${slot.bytes} bytes, and the budget is ${memoryBudget}.`;
        throw new InternalError(message, "model_too_large", undefined, 503, "model");
      }
    }
    for (;;) {
      const loaded = this.#all().filter(({ engine }) => engine !== undefined);
      const bytes = loaded.reduce((sum, other) => sum + other.bytes, slot.bytes);
      const fits = (memoryBudget === 0 || bytes <= memoryBudget) && (maxLoaded === 0 || loaded.length < maxLoaded);
      if (fits) return;
      const [leaving] = this.#retiring.values();
      if (leaving !== undefined) await leaving;
      else {
        const victim = leastRecent(loaded);
        if (victim === undefined) return;
        await this.#unload(victim, `room for ${slot.spec.name}`);
      }
    }
  }

  /** From here on the slot takes no request; when those that it has are done, its memory is free. */
  #unload(slot: ModelSlot, reason: string): Promise<void> {
    const { engine } = slot;
    if (engine === undefined) return Promise.resolve();
    slot.unloading ??= (async () => {
      const start = performance.now();
      clearTimeout(slot.idleTimer);
      try {
        await slot.whenUnused();
        await engine.drain();
        await engine.close();
      } finally {
        slot.engine = undefined;
        slot.unloading = undefined;
      }
      this.#emit({ type: "unloaded", model: slot.spec.name, reason, ms: performance.now() - start });
    })();
    return slot.unloading;
  }

  #retire(slot: ModelSlot): void {
    slot.retired = true;
    const gone = (async () => {
      // A failure goes to those who wait for the model.
      await slot.loading?.catch(() => undefined);
      await this.#unload(slot, "no longer configured");
    })().finally(() => this.#retiring.delete(slot));
    this.#retiring.set(slot, gone);
    gone.catch((error: unknown) => this.#emit({ type: "failed", model: slot.spec.name, reason: String(error) }));
  }

  /** Looks again when the slot may have been idle for long enough. */
  #watch(slot: ModelSlot): void {
    clearTimeout(slot.idleTimer);
    const { idleUnloadMs } = slot.spec;
    if (idleUnloadMs === 0 || slot.engine === undefined || this.#closing !== undefined) return;
    const wait = Math.max(1, slot.lastUseMs + idleUnloadMs - Date.now());
    slot.idleTimer = setTimeout(() => {
      if (slot.state !== "loaded") return;
      // A stream that still runs is use, and began a while ago.
      if (slot.requests > 0) this.#touch(slot);
      if (Date.now() - slot.lastUseMs < idleUnloadMs) {
        this.#watch(slot);
        return;
      }
      const unload = () => (slot.requests > 0 ? Promise.resolve() : this.#unload(slot, "idle"));
      this.#inTurn(unload).catch((error: unknown) =>
        this.#emit({ type: "failed", model: slot.spec.name, reason: String(error) }),
      );
    }, wait);
    slot.idleTimer.unref();
  }

  #emit(event: HostEvent): void {
    this.#runtime.onEvent?.(event);
  }
}

function namesOf(slots: readonly ModelSlot[]): Map<string, ModelSlot> {
  return new Map(slots.flatMap((slot) => [slot.spec.name, ...slot.spec.aliases].map((name) => [name, slot] as const)));
}
