import { stat } from "node:fs/promises";
import type { Engine } from "../engine.js";
import { AbortError, InternalError, TokenloopError } from "../errors.js";
import type { ModelSpec } from "./spec.js";

/** A request that waits for a model to be loaded. With the engine it has one of the slot's uses. */
export interface Waiter {
  engine: Engine | undefined;
}

/**
 * One model of a host, loaded or not. The host decides what happens to it; here is what is known of it.
 *
 * | state | next |
 * |---|---|
 * | unloaded | loading (a request, preload) |
 * | loading | loaded, or unloaded with an error for those that wait |
 * | loaded | unloading (room for another, idle, retired, closed) |
 * | unloading: takes no request, waits for its running ones | unloaded |
 */
export class ModelSlot {
  /** Changes with a configuration that leaves what is loaded as it is. */
  spec: ModelSpec;
  readonly created = Math.floor(Date.now() / 1000);
  /** What the loaded model depends on: its options, and the file itself. */
  readonly identity: string;
  engine: Engine | undefined;
  loading: Promise<void> | undefined;
  unloading: Promise<void> | undefined;
  /** Bytes that it takes, once that was asked. */
  bytes = 0;
  /** No longer configured, or replaced: loads no more. */
  retired = false;
  /** Requests that have the engine and may not have reached its queue yet. */
  uses = 0;
  readonly waiters = new Set<Waiter>();
  /** When it was last used: a count for the order, and a time. */
  lastUse = 0;
  lastUseMs = 0;
  idleTimer: NodeJS.Timeout | undefined;
  readonly #whenUnused: (() => void)[] = [];

  constructor(spec: ModelSpec, identity: string) {
    this.spec = spec;
    this.identity = identity;
  }

  get state(): "unloaded" | "loading" | "loaded" | "unloading" {
    if (this.unloading !== undefined) return "unloading";
    if (this.engine !== undefined) return "loaded";
    return this.loading === undefined ? "unloaded" : "loading";
  }

  /** Requests that wait or run in it. */
  get requests(): number {
    if (this.engine === undefined || this.state === "unloading") return this.uses;
    const { queued, prefilling, decoding } = this.engine.stats();
    return Math.max(this.uses, queued + prefilling + decoding);
  }

  release(): void {
    this.uses--;
    if (this.uses === 0) for (const resolve of this.#whenUnused.splice(0)) resolve();
  }

  whenUnused(): Promise<void> {
    if (this.uses === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenUnused.push(resolve);
    });
  }
}

/** Two slots of the same identity hold the same loaded model. */
export async function identityOf({ name, path, options }: ModelSpec): Promise<string> {
  const sorted = Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1));
  // A file that is missing is an error of the load, not of this.
  const file = await stat(path).catch(() => undefined);
  return JSON.stringify([name, path, sorted, file?.size, file?.mtimeMs]);
}

/** The one to go: an idle one before a busy one, then the one that was used longest ago. */
export function leastRecent(slots: readonly ModelSlot[]): ModelSlot | undefined {
  const free = slots.filter((slot) => slot.unloading === undefined);
  const busy = (slot: ModelSlot) => (slot.requests > 0 ? 1 : 0);
  return free.sort((a, b) => busy(a) - busy(b) || a.lastUse - b.lastUse)[0];
}

/** Waits for the promise; the abort ends the waiting, not the work. */
export async function unlessAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return promise;
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(new AbortError(signal.reason));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
  });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    if (abort !== undefined) signal.removeEventListener("abort", abort);
  }
}

/**
 * Why a request gets no model. What is wrong with a file or an option is not the request's fault, and paths are none of its
 * business: whoever runs the host hears of them in an event.
 */
export function forRequest(error: unknown, name: string): unknown {
  // An abort, no such name any more, closed or too large: these are for the request.
  if (!(error instanceof TokenloopError) || [499, 404, 503].includes(error.status)) return error;
  return new InternalError(`The model '${name}' cannot be loaded.`, error.code, error, 500, "model");
}
