import { stat } from "node:fs/promises";
import { basename } from "node:path";
import {
  AbortError,
  BadRequestError,
  fromNative,
  ModelFileError,
  ModelLoadError,
  type TokenloopError,
} from "./errors.js";
import { EventRouter } from "./events.js";
import { type Choice, estimatorOf, fitMemory } from "./fit.js";
import { templateFault } from "./gguf/check-template.js";
import { checkModelFile } from "./gguf/index.js";
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
  /** What was chosen for options given as "auto". */
  choices: Choice[];
}

/** Loads a model through the given addon. `Engine.load` documents the errors. `check` looks at the files first. */
export async function loadParts(
  addon: () => NativeAddon,
  options: LoadOptions,
  check: (options: NativeLoadOptions) => Promise<void> = checkFiles,
): Promise<EngineParts> {
  const { native: given, auto, modelId, onProgress, signal } = validateLoadOptions(options);
  if (signal?.aborted) throw new AbortError(signal.reason);
  await check(given);
  if (signal?.aborted) throw new AbortError(signal.reason);

  const loaded = addon();
  const { options: nativeOptions, choices } = await fitMemory(given, auto, estimatorOf(loaded));
  if (signal?.aborted) throw new AbortError(signal.reason);
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
      choices,
    };
  } catch (error) {
    if (signal?.aborted) throw error instanceof AbortError ? error : new AbortError(signal.reason);
    throw loadError(error, nativeOptions.model);
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

/**
 * llama.cpp ends the process over some damaged files: none of them may get that far.
 *
 * @throws {ModelLoadError} the model is missing or damaged.
 * @throws {BadRequestError} the draft model is damaged, or the template is nested too deep.
 */
export async function checkFiles({ model, draftModel, chatTemplate }: NativeLoadOptions): Promise<void> {
  const fault = templateFault(chatTemplate);
  if (fault !== undefined) {
    throw new BadRequestError(`Invalid option 'chatTemplate': ${fault}.`, "chatTemplate", "invalid_chat_template");
  }
  await checkFile(model);
  await checkModelFile(model);
  if (draftModel === "") return;
  try {
    await checkModelFile(draftModel);
  } catch (error) {
    // Where there is no such file, the addon says so.
    if (!(error instanceof ModelFileError)) throw error;
    if (error.code === "gguf_unreadable") return;
    throw new BadRequestError(error.message, "draftModel", error.code);
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
