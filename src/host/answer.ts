import type { Engine } from "../engine.js";
import { foldChunks } from "../openai/fold.js";
import type { ChatCompletionCreateParams } from "../openai/params.js";
import type { ChatCompletion, ChatCompletionMessageParam } from "../openai/types.js";
import { validateRequest } from "../openai/validate.js";
import { ChatCompletionStream, type ChunkSource } from "../stream.js";
import type { MergedRequest } from "./merge.js";
import type { TextStage } from "./postprocess.js";
import { ProcessedSource } from "./processed.js";
import type { ModelSpec } from "./spec.js";

/** Answers a merged request, and does to the answer what the model's configuration says. */
export async function answer(
  engine: Engine,
  spec: ModelSpec,
  { body, stop }: MergedRequest,
  signal: AbortSignal | undefined,
): Promise<ChatCompletion | ChatCompletionStream> {
  // What it is, the engine finds out.
  const params = body as unknown as ChatCompletionCreateParams;
  const changes = spec.echo || spec.replyPrefix !== "" || spec.postprocess !== undefined;
  if (!changes) return engine.chat.completions.create(params, { signal, stop });

  if (body.stream !== true) validateRequest(body);
  const echo = spec.echo ? await engine.applyTemplate(body.messages as ChatCompletionMessageParam[]) : "";
  const make = () => new LeadStage(echo + spec.replyPrefix, spec.postprocess?.());
  // One path: an answer that is not streamed is folded from the same chunks.
  const streamed =
    body.stream === true ? params : { ...params, stream: true as const, stream_options: { include_usage: true } };
  const stream = await engine.chat.completions.create(
    streamed as Extract<ChatCompletionCreateParams, { stream: true }>,
    { signal, stop },
  );
  const processed = new ChatCompletionStream(new ProcessedSource(sourceOf(stream), make));
  return body.stream === true ? processed : foldChunks(processed);
}

/** Text before an answer's own. */
class LeadStage implements TextStage {
  #lead: string;
  readonly #rest: TextStage | undefined;

  constructor(lead: string, rest: TextStage | undefined) {
    this.#lead = lead;
    this.#rest = rest;
  }

  push(text: string): string {
    const whole = this.#lead + text;
    this.#lead = "";
    return this.#rest === undefined ? whole : this.#rest.push(whole);
  }

  finish(): string {
    const rest = this.#lead === "" ? "" : this.push("");
    return rest + (this.#rest?.finish() ?? "");
  }
}

function sourceOf(stream: ChatCompletionStream): ChunkSource {
  const iterator = stream[Symbol.asyncIterator]();
  return {
    controller: stream.controller,
    next: () => iterator.next(),
    takeReady: () => stream.takeReady(),
    leave: async () => {
      await iterator.return?.();
    },
  };
}
