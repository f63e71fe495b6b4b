import { basename } from "node:path";
import type { Engine } from "../engine.js";
import type { LoadOptions } from "../load-options.js";
import type { Io } from "./io.js";
import { ProgressBar } from "./progress.js";

/** Loads a model with a progress bar; SIGINT and SIGTERM end the load with an AbortError. */
export async function loadWithProgress(io: Io, options: LoadOptions): Promise<Engine> {
  const bar = new ProgressBar(io.stderr, `Loading ${basename(options.model)}`);
  const controller = new AbortController();
  const release = io.onSignal(["SIGINT", "SIGTERM"], () => controller.abort());
  try {
    return await io.load({ ...options, signal: controller.signal, onProgress: (fraction) => bar.update(fraction) });
  } finally {
    release();
    bar.end();
  }
}
