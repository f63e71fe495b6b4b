import { toErrorBody } from "../errors.js";
import { ChunkSerializer } from "../openai/chunks.js";
import type { CompletionChunk } from "../openai/completion-params.js";
import type { ChatCompletionChunk } from "../openai/types.js";

type Chunk = ChatCompletionChunk | CompletionChunk;

/** A stream of chunks that can also say which are ready now. */
export interface ReadyChunks extends AsyncIterable<Chunk> {
  takeReady(): Chunk[];
}

/**
 * A stream as server-sent events: `data: {json}` for each chunk, `data: [DONE]` at the end. An error on the way becomes
 * `data: {"error": …}` and the end, for the status is long out; an abort breaks the body off.
 *
 * Chunks that are ready together are written together: over a socket that is what a token costs most. `change`: what each becomes before.
 */
export function toServerSentEvents(stream: ReadyChunks, change?: (chunk: Chunk) => Chunk): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const serializer = new ChunkSerializer();
  const iterator = stream[Symbol.asyncIterator]();
  const event = (chunk: Chunk) => `data: ${serialize(change === undefined ? chunk : change(chunk))}\n\n`;
  const serialize = (chunk: Chunk) =>
    chunk.object === "text_completion" ? JSON.stringify(chunk) : serializer.serialize(chunk);
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      try {
        const { done, value } = await iterator.next();
        if (done) {
          controller.enqueue(encoder.encode("data: [DONE]\n\n"));
          controller.close();
          return;
        }
        let text = event(value);
        for (const chunk of stream.takeReady()) text += event(chunk);
        controller.enqueue(encoder.encode(text));
      } catch (error) {
        if (error instanceof Error && error.name === "AbortError") {
          controller.error(error);
          return;
        }
        controller.enqueue(encoder.encode(`data: ${JSON.stringify(toErrorBody(error))}\n\n`));
        controller.close();
      }
    },
    async cancel() {
      await iterator.return?.();
    },
  };
  return new ReadableStream(source, { highWaterMark: 1 });
}
