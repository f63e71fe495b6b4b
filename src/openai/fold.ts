import { InternalError } from "../errors.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  CompletionUsage,
  FinishReason,
  Timings,
  TokenLogprob,
} from "./types.js";

/** What has come in for one choice. */
interface Partial {
  content: string[];
  logprobs: TokenLogprob[];
  finishReason: FinishReason | undefined;
}

/**
 * The non-streaming answer: a fold over the chunks that streaming sends, so that the two can never differ. The chunks
 * must have been built with usage.
 */
export async function foldChunks(chunks: AsyncIterable<ChatCompletionChunk>): Promise<ChatCompletion> {
  const choices = new Map<number, Partial>();
  let first: ChatCompletionChunk | undefined;
  let usage: CompletionUsage | undefined;
  let timings: Timings | undefined;
  for await (const chunk of chunks) {
    first ??= chunk;
    usage = chunk.usage ?? usage;
    timings = chunk.timings ?? timings;
    for (const { index, delta, logprobs, finish_reason } of chunk.choices) {
      const partial = choices.get(index) ?? { content: [], logprobs: [], finishReason: undefined };
      choices.set(index, partial);
      if (delta.content !== undefined) partial.content.push(delta.content);
      if (logprobs !== null) partial.logprobs.push(...logprobs.content);
      partial.finishReason = finish_reason ?? partial.finishReason;
    }
  }
  if (first === undefined || usage === undefined || timings === undefined) {
    throw new InternalError("The answer ended without its last chunk.");
  }
  return {
    id: first.id,
    object: "chat.completion",
    created: first.created,
    model: first.model,
    system_fingerprint: first.system_fingerprint,
    choices: [...choices].sort(([a], [b]) => a - b).map(([index, partial]) => toChoice(index, partial)),
    usage,
    timings,
  };
}

function toChoice(index: number, { content, logprobs, finishReason }: Partial): ChatCompletion["choices"][number] {
  if (finishReason === undefined) throw new InternalError(`Choice ${index} ended without a finish_reason.`);
  return {
    index,
    message: { role: "assistant", content: content.join(""), refusal: null },
    logprobs: logprobs.length === 0 ? null : { content: logprobs, refusal: null },
    finish_reason: finishReason,
  };
}
