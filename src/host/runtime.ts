import type { Engine } from "../engine.js";
import type { MemoryEstimate } from "../estimate.js";
import type { LoadOptions } from "../load-options.js";
import type { ModelSlot } from "./slot.js";

/** Something that happened to a model. */
export interface HostEvent {
  type: "loading" | "loaded" | "unloaded" | "failed";
  model: string;
  /** Why it was unloaded, or what went wrong. */
  reason?: string;
  /** Milliseconds that it took. */
  ms?: number;
}

/** Where engines come from, and who hears of them. */
export interface HostRuntime {
  load(options: LoadOptions): Promise<Engine>;
  estimate(options: LoadOptions): Promise<MemoryEstimate>;
  onEvent?: ((event: HostEvent) => void) | undefined;
}

/** One model, now. */
export interface ModelStatus {
  name: string;
  state: ModelSlot["state"];
  /** Requests that wait or run in it. */
  requests: number;
  /** What it was estimated to take; 0 where nothing asked. */
  bytes: number;
}
