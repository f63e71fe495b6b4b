import { fromNative, type TokenloopError } from "./errors.js";
import { finishReasons, NativeEvent, type NativeFinishReason, type NativeResult, recordSize } from "./native.js";
import type { TokenLogprob } from "./openai/types.js";

/** What one request hears of each of its choices, in order: prompt, deltas, then exactly one of finished and failed. */
export interface RequestSink {
  prompt(choice: number): void;
  delta(choice: number, text: string): void;
  /** `units`: length of the record's text. */
  logprobs(choice: number, entry: TokenLogprob, units: number): void;
  finished(choice: number, reason: NativeFinishReason, result: NativeResult): void;
  failed(choice: number, error: TokenloopError): void;
}

interface Listener {
  sink: RequestSink;
  /** Choices that have not had their last event. */
  open: Set<number>;
}

/** Hands the addon's packed event batches to the requests they are about. One router belongs to one engine. */
export class EventRouter {
  readonly #listeners = new Map<number, Listener>();
  readonly #whenEmpty: (() => void)[] = [];

  /** Requests that have not had all their last events. */
  get size(): number {
    return this.#listeners.size;
  }

  add(id: number, sink: RequestSink, choices: number): void {
    this.#listeners.set(id, { sink, open: new Set(Array(choices).keys()) });
  }

  /** A copy: sinks may leave while the caller goes through them. */
  sinks(): RequestSink[] {
    return [...this.#listeners.values()].map(({ sink }) => sink);
  }

  /** The handler that the addon calls. Bound, and it never throws: an exception here would land in the addon. */
  readonly handle = (text: string, records: Int32Array): void => {
    for (let at = 0; at + recordSize <= records.length; at += recordSize) {
      const id = records[at] ?? 0;
      const listener = this.#listeners.get(id);
      if (listener === undefined) continue;
      const { sink, open } = listener;
      const choice = records[at + 1] ?? 0;
      const kind = records[at + 2];
      if (kind === NativeEvent.Delta) {
        sink.delta(choice, text.slice(records[at + 4], records[at + 5]));
      } else if (kind === NativeEvent.Prompt) {
        sink.prompt(choice);
      } else if (kind === NativeEvent.Logprobs) {
        const json = text.slice(records[at + 4], records[at + 5]);
        const entry = parse(json);
        if (entry !== undefined) sink.logprobs(choice, entry as TokenLogprob, json.length);
      } else if (open.delete(choice)) {
        if (open.size === 0) this.#remove(id);
        this.#last(sink, choice, kind, records[at + 3] ?? 0, text.slice(records[at + 4], records[at + 5]));
      }
    }
  };

  /** Resolves when no request is left that has not had its last events. */
  whenEmpty(): Promise<void> {
    if (this.#listeners.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenEmpty.push(resolve);
    });
  }

  /** Ends every choice that the addon left without a last event. */
  failAll(error: TokenloopError): void {
    for (const [id, { sink, open }] of [...this.#listeners]) {
      this.#remove(id);
      for (const choice of open) sink.failed(choice, error);
    }
  }

  #remove(id: number): void {
    this.#listeners.delete(id);
    if (this.#listeners.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  #last(sink: RequestSink, choice: number, kind: number | undefined, value: number, json: string): void {
    const body = parse(json);
    const reason = finishReasons[value];
    if (kind === NativeEvent.Finished && reason !== undefined && body !== undefined) {
      sink.finished(choice, reason, body as NativeResult);
    } else if (kind === NativeEvent.Failed) {
      sink.failed(choice, fromNative(body ?? { message: `The engine failed: ${json}` }));
    } else {
      sink.failed(
        choice,
        fromNative({ message: `The addon sent an event that this version does not know (kind ${kind}).` }),
      );
    }
  }
}

function parse(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
