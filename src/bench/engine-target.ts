import { basename } from "node:path";
import type { Engine } from "../engine.js";
import { TokenloopError } from "../errors.js";
import type { EngineOptions } from "../load-options.js";
import type { ChatCompletionCreateParamsStreaming } from "../openai/params.js";
import { processUsage } from "./process-usage.js";
import { type OnChunk, RequestFailure, type Target } from "./target.js";
import { TurnClock } from "./turn-clock.js";

/** The engine in this process, called as a user would. It is closed with the target. */
export function engineTarget(engine: Engine, options: EngineOptions): Target {
  const { build, chatTemplate: _, path, created: __, ...info } = engine.info;
  const clock = new TurnClock();
  return {
    kind: "engine",
    model: engine.info.id,
    about: {
      file: basename(path),
      ...info,
      engine_options: options,
      llama_build: build.llamaBuild,
      llama_commit: build.llamaCommit,
      devices: build.devices,
      system_info: build.systemInfo,
    },
    async send(body, signal, onChunk) {
      try {
        await read(engine, body, signal, onChunk, clock);
      } catch (error) {
        if (signal.aborted || !(error instanceof TokenloopError)) throw error;
        throw new RequestFailure(`${error.status} ${error.code}`, error.message);
      }
    },
    usage: () => processUsage(process.pid),
    close: () => engine.close(),
  };
}

async function read(
  engine: Engine,
  body: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
  onChunk: OnChunk,
  clock: TurnClock,
): Promise<void> {
  // The engine checks what it is given; a body with extra fields has no type.
  const params = { ...body, stream: true } as unknown as ChatCompletionCreateParamsStreaming;
  const stream = await engine.chat.completions.create(params, { signal });
  for await (const chunk of stream) onChunk(chunk, clock.now());
}
