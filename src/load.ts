import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { AbortError, fromNative, ModelLoadError, type TokenloopError } from "./errors.js";
import { EventRouter } from "./events.js";
import { type LoadOptions, validateLoadOptions } from "./load-options.js";
import type { NativeAddon, NativeBuildInfo, NativeEngine, NativeLoad, NativeLoadOptions } from "./native.js";

/** What an Engine is made of. */
export interface EngineParts {
  native: NativeEngine;
  router: EventRouter;
  build: NativeBuildInfo;
  modelId: string;
  path: string;
  /** What it was loaded with, defaults filled in. */
  options: NativeLoadOptions;
}

/** Loads a model through the given addon. `Engine.load` documents the errors. */
export async function loadParts(addon: () => NativeAddon, options: LoadOptions): Promise<EngineParts> {
  const { native: nativeOptions, modelId, onProgress, signal } = validateLoadOptions(options);
  if (signal?.aborted) throw new AbortError(signal.reason);
  await checkFile(nativeOptions.model);
  if (signal?.aborted) throw new AbortError(signal.reason);

  const loaded = addon();
  const router = new EventRouter();
  let load: NativeLoad;
  try {
    load = loaded.loadModel(nativeOptions, router.handle, onProgress);
  } catch (error) {
    throw loadError(error, nativeOptions.model);
  }
  const cancel = () => load.cancel();
  signal?.addEventListener("abort", cancel);
  try {
    const native = await load.promise;
    if (signal?.aborted) {
      // The abort came too late to stop the load: what it made must not stay.
      await native.close();
      throw new AbortError(signal.reason);
    }
    return {
      native,
      router,
      build: loaded.buildInfo(),
      modelId: modelId ?? (native.info.name || basename(nativeOptions.model).replace(/\.gguf$/i, "")),
      path: nativeOptions.model,
      options: nativeOptions,
    };
  } catch (error) {
    if (signal?.aborted) throw error instanceof AbortError ? error : new AbortError(signal.reason);
    throw loadError(error, nativeOptions.model);
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

async function checkFile(path: string): Promise<void> {
  try {
    if ((await stat(path)).isFile()) return;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const reason = code === "ENOENT" ? "no such file" : error instanceof Error ? error.message : String(error);
    throw new ModelLoadError(`Cannot load the model '${path}': ${reason}.`, path, "model_file_not_found", error);
  }
  throw new ModelLoadError(`Cannot load the model '${path}': not a file.`, path, "model_file_not_found");
}

/** A refusal that names an option stays what it is; everything else is about the file. */
function loadError(error: unknown, path: string): TokenloopError {
  const mapped = fromNative(error);
  if (mapped.status < 500) return mapped;
  const message = mapped.message.includes(path) ? mapped.message : `Cannot load the model '${path}': ${mapped.message}`;
  const code = mapped.code === "internal_error" ? "model_load_failed" : mapped.code;
  return new ModelLoadError(message, path, code, error);
}
