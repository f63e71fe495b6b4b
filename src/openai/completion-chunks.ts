import { InternalError } from "../errors.js";
import type { ChatCompletionStream } from "../stream.js";
import type { Completion, CompletionChoice, CompletionChunk, CompletionLogprobs } from "./completion-params.js";
import type { ChatCompletionChunk, ChatCompletionChunkChoice, CompletionUsage, TokenLogprob } from "./types.js";

/** One prompt's answers on their way. */
export interface TextSource {
  stream: ChatCompletionStream;
  /** What `echo` puts before each text; "": nothing. */
  echo: string;
}

export interface TextOptions {
  /** Answers to each prompt. */
  n: number;
  /** As asked for; undefined: no logprobs. */
  topLogprobs: number | undefined;
  /** Whether a last chunk carries the usage. */
  includeUsage: boolean;
}

/**
 * Text completions are chat chunks in other words: the one path from the engine stays. The choices of prompt p are
 * numbered from p·n on. Read once; leaving early ends all of them.
 */
export class CompletionStream implements AsyncIterable<CompletionChunk> {
  readonly #sources: readonly TextSource[];
  readonly #options: TextOptions;
  readonly #lengths = new Map<number, number>();
  readonly #usages: CompletionUsage[] = [];
  #head: Pick<CompletionChunk, "id" | "created" | "model" | "system_fingerprint"> | undefined;

  constructor(sources: readonly TextSource[], options: TextOptions) {
    this.#sources = sources;
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncIterableIterator<CompletionChunk> {
    for await (const [nth, chunk] of merge(this.#sources.map(({ stream }) => stream))) {
      yield* this.#translate(nth, chunk);
    }
    if (!this.#options.includeUsage) return;
    yield { ...this.#frame([]), usage: mergeUsage(this.#usages) };
  }

  /** Chunks that are ready now; none where several prompts are merged, whose next chunks are asked for already. */
  takeReady(): CompletionChunk[] {
    const [source, second] = this.#sources;
    if (source === undefined || second !== undefined) return [];
    return source.stream.takeReady().flatMap((chunk) => [...this.#translate(0, chunk)]);
  }

  *#translate(nth: number, chunk: ChatCompletionChunk): Iterable<CompletionChunk> {
    const { id, created, model, system_fingerprint } = chunk;
    this.#head ??= { id: id.replace(/^chatcmpl-/, "cmpl-"), created, model, system_fingerprint };
    if (chunk.usage) this.#usages.push(chunk.usage);
    const { echo } = this.#sources[nth] ?? { echo: "" };
    const choices = chunk.choices
      .map((choice) => this.#choice(nth * this.#options.n + choice.index, choice, echo))
      .filter((choice) => choice !== undefined);
    if (choices.length === 0) return;
    yield { ...this.#frame(choices), ...(chunk.timings === undefined ? {} : { timings: chunk.timings }) };
  }

  #choice(index: number, choice: ChatCompletionChunkChoice, echo: string): CompletionChoice | undefined {
    const { delta, finish_reason, logprobs } = choice;
    const text = delta.role === undefined ? (delta.content ?? "") : echo;
    if (text === "" && finish_reason === null) return undefined;
    if (finish_reason !== null && finish_reason !== "stop" && finish_reason !== "length") {
      throw new InternalError(`A text ended with '${finish_reason}'.`);
    }
    return { index, text, logprobs: this.#logprobs(index, logprobs?.content ?? []), finish_reason };
  }

  #logprobs(index: number, entries: readonly TokenLogprob[]): CompletionLogprobs | null {
    const { topLogprobs } = this.#options;
    if (topLogprobs === undefined) return null;
    let offset = this.#lengths.get(index) ?? 0;
    const text_offset = entries.map(({ token }) => {
      const begin = offset;
      offset += [...token].length;
      return begin;
    });
    this.#lengths.set(index, offset);
    return {
      tokens: entries.map(({ token }) => token),
      token_logprobs: entries.map(({ logprob }) => logprob),
      // Most likely first: of two tokens with one text, that one stays.
      top_logprobs:
        topLogprobs === 0
          ? null
          : entries.map(({ top_logprobs }) =>
              Object.fromEntries([...top_logprobs].reverse().map(({ token, logprob }) => [token, logprob])),
            ),
      text_offset,
    };
  }

  #frame(choices: CompletionChoice[]): CompletionChunk {
    if (this.#head === undefined) throw new InternalError("A text ended before it began.");
    const { id, created, model, system_fingerprint } = this.#head;
    const usage = this.#options.includeUsage ? { usage: null } : {};
    return { id, object: "text_completion", created, model, system_fingerprint, choices, ...usage };
  }
}

/** What comes first from any of them; never more than one asked for from each. */
async function* merge(streams: readonly ChatCompletionStream[]): AsyncIterable<[number, ChatCompletionChunk]> {
  const iterators = streams.map((stream) => stream[Symbol.asyncIterator]());
  const next = async (nth: number) => ({ nth, result: await iterators[nth]?.next() });
  const waiting = new Map(iterators.map((_, nth) => [nth, next(nth)]));
  try {
    while (waiting.size > 0) {
      const { nth, result } = await Promise.race(waiting.values());
      if (result === undefined || result.done) {
        waiting.delete(nth);
        continue;
      }
      yield [nth, result.value];
      waiting.set(nth, next(nth));
    }
  } finally {
    // After a failure or an early end: what was asked for from the others is of no use to anybody.
    for (const promise of waiting.values()) promise.catch(() => undefined);
    await Promise.all(iterators.map((iterator) => iterator.return?.()));
  }
}

/** The whole answer, as a fold over the chunks of its stream, which must have usage. */
export async function foldCompletion(stream: CompletionStream): Promise<Completion> {
  const choices = new Map<number, CompletionChoice>();
  let last: CompletionChunk | undefined;
  let timings: CompletionChunk["timings"];
  for await (const chunk of stream) {
    last = chunk;
    timings = chunk.timings ?? timings;
    for (const part of chunk.choices) {
      const choice = choices.get(part.index);
      if (choice === undefined) choices.set(part.index, { ...part });
      else append(choice, part);
    }
  }
  if (!last?.usage || timings === undefined) throw new InternalError("The answer ended without its last chunk.");
  const { usage, ...head } = last;
  return {
    ...head,
    choices: [...choices.values()].sort((a, b) => a.index - b.index).map(whole),
    usage,
    timings,
  };
}

function append(choice: CompletionChoice, { text, finish_reason, logprobs }: CompletionChoice): void {
  choice.text += text;
  choice.finish_reason = finish_reason ?? choice.finish_reason;
  if (choice.logprobs === null || logprobs === null) return;
  choice.logprobs.tokens.push(...logprobs.tokens);
  choice.logprobs.token_logprobs.push(...logprobs.token_logprobs);
  choice.logprobs.text_offset.push(...logprobs.text_offset);
  choice.logprobs.top_logprobs?.push(...(logprobs.top_logprobs ?? []));
}

function whole(choice: CompletionChoice): Completion["choices"][number] {
  const { finish_reason } = choice;
  if (finish_reason === null) throw new InternalError(`Choice ${choice.index} ended without a finish_reason.`);
  return { ...choice, finish_reason };
}

/** What several prompts took together. */
function mergeUsage(usages: readonly CompletionUsage[]): CompletionUsage {
  const sum = (read: (usage: CompletionUsage) => number) => usages.reduce((total, usage) => total + read(usage), 0);
  return {
    prompt_tokens: sum(({ prompt_tokens }) => prompt_tokens),
    completion_tokens: sum(({ completion_tokens }) => completion_tokens),
    total_tokens: sum(({ total_tokens }) => total_tokens),
    prompt_tokens_details: {
      cached_tokens: sum(({ prompt_tokens_details }) => prompt_tokens_details.cached_tokens),
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
