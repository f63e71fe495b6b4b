import type { LoadOptions } from "../../src/load-options.js";
import { type Scripted, type ScriptedOptions, scriptedEngine } from "../../src/testing/index.js";
import { nanoModel } from "../models/nano.js";

export type { Scripted } from "../../src/testing/index.js";

/** Any model will do: the scripted addon does not read it. */
export const modelFile = nanoModel();

export function scripted(options: ScriptedOptions = {}, load: Partial<LoadOptions> = {}): Promise<Scripted> {
  return scriptedEngine(options, { model: modelFile, ...load });
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
