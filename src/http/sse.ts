import { toErrorBody } from "../errors.js";
import { ChunkSerializer } from "../openai/chunks.js";
import type { ChatCompletionStream } from "../stream.js";

/**
 * A stream as server-sent events: `data: {json}` for each chunk, `data: [DONE]` at the end. An error on the way becomes
 * `data: {"error": …}` and the end, for the status is long out; an abort breaks the body off.
 *
 * Chunks that are ready together are written together: over a socket that is what a token costs most.
 */
export function toServerSentEvents(stream: ChatCompletionStream): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const serializer = new ChunkSerializer();
  const iterator = stream[Symbol.asyncIterator]();
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      try {
        const { done, value } = await iterator.next();
        if (done) {
          controller.enqueue(encoder.encode("data: [DONE]\n\n"));
          controller.close();
          return;
        }
        let text = `data: ${serializer.serialize(value)}\n\n`;
        for (const chunk of stream.takeReady()) text += `data: ${serializer.serialize(chunk)}\n\n`;
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
