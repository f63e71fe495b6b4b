import type { ChatCompletionChunk, ChatCompletionChunkChoice } from "../openai/types.js";
import type { ChunkSource } from "../stream.js";
import type { TextStage } from "./postprocess.js";

/**
 * The chunks of a stream with each answer's text sent through a stage. What the stage still holds when an answer ends comes
 * in a chunk of its own, before the one that says so. Reasoning and tool calls go by untouched.
 */
export class ProcessedSource implements ChunkSource {
  readonly #source: ChunkSource;
  readonly #make: () => TextStage;
  /** By choice. */
  readonly #stages = new Map<number, TextStage>();
  #ready: ChatCompletionChunk[] = [];

  constructor(source: ChunkSource, make: () => TextStage) {
    this.#source = source;
    this.#make = make;
  }

  get controller(): AbortController {
    return this.#source.controller;
  }

  async next(): Promise<IteratorResult<ChatCompletionChunk, undefined>> {
    for (;;) {
      const ready = this.#ready.shift();
      if (ready !== undefined) return { done: false, value: ready };
      const result = await this.#source.next();
      if (result.done) return result;
      this.#ready = this.#process(result.value);
    }
  }

  takeReady(): ChatCompletionChunk[] {
    const ready = [...this.#ready, ...this.#source.takeReady().flatMap((chunk) => this.#process(chunk))];
    this.#ready = [];
    return ready;
  }

  leave(): Promise<void> {
    this.#ready = [];
    return this.#source.leave();
  }

  #process(chunk: ChatCompletionChunk): ChatCompletionChunk[] {
    const before: ChatCompletionChunk[] = [];
    const choices: ChatCompletionChunkChoice[] = [];
    for (const choice of chunk.choices) {
      const stage = this.#stages.get(choice.index) ?? this.#make();
      this.#stages.set(choice.index, stage);
      const { content } = choice.delta;
      const given = content === undefined || content === null ? "" : content;
      const ends = choice.finish_reason !== null;
      const text = (given === "" ? "" : stage.push(given)) + (ends ? stage.finish() : "");
      if (ends) this.#stages.delete(choice.index);
      if (ends && given === "" && text !== "") {
        const delta = { content: text };
        // Timings belong to the chunk that ends an answer.
        const { timings: _, ...rest } = chunk;
        before.push({ ...rest, choices: [{ ...choice, delta, logprobs: null, finish_reason: null }] });
        choices.push(choice);
      } else if (given === "") {
        choices.push(choice);
      } else {
        choices.push({ ...choice, delta: { ...choice.delta, content: text } });
      }
    }
    const changed = { ...chunk, choices };
    return isEmpty(chunk, changed) ? before : [...before, changed];
  }
}

/** Whether nothing is left of a chunk that had some text: it need not be sent. */
function isEmpty(chunk: ChatCompletionChunk, changed: ChatCompletionChunk): boolean {
  return (
    chunk.choices.length > 0 &&
    changed.choices.every(
      ({ delta, logprobs, finish_reason }, i) =>
        delta.content === "" &&
        chunk.choices[i]?.delta.content !== "" &&
        Object.keys(delta).length === 1 &&
        logprobs === null &&
        finish_reason === null,
    )
  );
}
