import type { Engine } from "../engine.js";
import type { MemoryEstimate } from "../estimate.js";
import type { LoadOptions } from "../load-options.js";

/** What a command touches of the process; tests give their own. */
export interface Io {
  readonly stdin: NodeJS.ReadableStream & { isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { isTTY?: boolean };
  readonly env: Readonly<NodeJS.ProcessEnv>;
  load(options: LoadOptions): Promise<Engine>;
  estimate(options: LoadOptions): Promise<MemoryEstimate>;
  /** Calls the handler on each of these signals, until the returned function is called. */
  onSignal(signals: readonly NodeJS.Signals[], handler: (signal: NodeJS.Signals) => void): () => void;
}

/** Exit statuses. */
export const exit = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/** The command line is wrong; the message says how. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
