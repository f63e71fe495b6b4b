import { fileURLToPath } from "node:url";
import { type Engine, loadEngine } from "../../src/engine.js";
import type { LoadOptions } from "../../src/load-options.js";
import { ScriptedNative, type ScriptedOptions } from "./scripted-native.js";

/** Any file will do: the scripted addon does not read it. */
export const modelFile = fileURLToPath(import.meta.url);

export interface Scripted {
  engine: Engine;
  native: ScriptedNative;
}

export async function scripted(options: ScriptedOptions = {}, load: Partial<LoadOptions> = {}): Promise<Scripted> {
  const native = new ScriptedNative(options);
  const engine = await loadEngine(() => native, { model: modelFile, ...load });
  return { engine, native };
}

export const hi = { messages: [{ role: "user" as const, content: "hi" }] };

/** What the promise rejects with; throws when it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("The promise was expected to reject.");
}

/** Lets immediates and short timers that are due run. */
export function tick(milliseconds = 0): Promise<void> {
  return new Promise((resolve) => {
    if (milliseconds === 0) setImmediate(resolve);
    else setTimeout(resolve, milliseconds);
  });
}
