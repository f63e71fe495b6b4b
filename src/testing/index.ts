/**
 * `tokenloop/testing`: an engine without a model, for tests of what is built on one. It is the real `Engine` (validation,
 * chunks, stop strings, cancellation, `fetch`), and only what would come from the model comes from a script.
 */
import { fileURLToPath } from "node:url";
import { type Engine, loadEngine } from "../engine.js";
import type { LoadOptions } from "../load-options.js";
import { ScriptedNative, type ScriptedOptions } from "./scripted-native.js";

export { type Script, ScriptedNative, type ScriptedOptions, type ScriptedRequest } from "./scripted-native.js";

export interface Scripted {
  engine: Engine;
  /** What the engine asked of its model: requests, cancels, what readers took. */
  native: ScriptedNative;
}

/** Stands in for the model file, which must exist; nobody reads it. */
const modelFile = fileURLToPath(import.meta.url);

/**
 * Loads an engine that plays a script. Load options are those of `Engine.load` and are checked as there; none is needed.
 *
 * ```ts
 * const { engine } = await scriptedEngine({ script: "Hello from the script." });
 * ```
 */
export async function scriptedEngine(
  options: ScriptedOptions = {},
  load: Partial<LoadOptions> = {},
): Promise<Scripted> {
  const native = new ScriptedNative(options);
  // A script needs no model: only one that was asked for is looked at.
  const check = load.model === undefined ? () => Promise.resolve() : undefined;
  const engine = await loadEngine(() => native, { model: modelFile, ...load }, check);
  return { engine, native };
}
