import { fromNative, type TokenloopError } from "./errors.js";
import { finishReasons, NativeEvent, type NativeFinishReason, type NativeResult, recordSize } from "./native.js";

/** What one request hears of itself, in order: prompt, deltas, then exactly one of finished and failed. */
export interface RequestSink {
  prompt(tokens: number): void;
  delta(text: string, tokens: number): void;
  finished(reason: NativeFinishReason, result: NativeResult): void;
  failed(error: TokenloopError): void;
}

/** Hands the addon's packed event batches to the requests they are about. One router belongs to one engine. */
export class EventRouter {
  readonly #sinks = new Map<number, RequestSink>();

  /** Requests that have not had their last event. */
  get size(): number {
    return this.#sinks.size;
  }

  add(id: number, sink: RequestSink): void {
    this.#sinks.set(id, sink);
  }

  /** A copy: sinks may leave while the caller goes through them. */
  sinks(): RequestSink[] {
    return [...this.#sinks.values()];
  }

  /** The handler that the addon calls. Bound, and it never throws: an exception here would land in the addon. */
  readonly handle = (text: string, records: Int32Array): void => {
    for (let at = 0; at + recordSize <= records.length; at += recordSize) {
      const id = records[at] ?? 0;
      const sink = this.#sinks.get(id);
      if (sink === undefined) continue;
      const kind = records[at + 2];
      const value = records[at + 3] ?? 0;
      if (kind === NativeEvent.Delta) {
        sink.delta(text.slice(records[at + 4], records[at + 5]), value);
      } else if (kind === NativeEvent.Prompt) {
        sink.prompt(value);
      } else {
        this.#sinks.delete(id);
        this.#last(sink, kind, value, text.slice(records[at + 4], records[at + 5]));
      }
    }
  };

  /** Ends every request that the addon left without a last event. */
  failAll(error: TokenloopError): void {
    const left = this.sinks();
    this.#sinks.clear();
    for (const sink of left) sink.failed(error);
  }

  #last(sink: RequestSink, kind: number | undefined, value: number, json: string): void {
    const body = parse(json);
    const reason = finishReasons[value];
    if (kind === NativeEvent.Finished && reason !== undefined && body !== undefined) {
      sink.finished(reason, body as NativeResult);
    } else if (kind === NativeEvent.Failed) {
      sink.failed(fromNative(body ?? { message: `The engine failed: ${json}` }));
    } else {
      sink.failed(fromNative({ message: `The addon sent an event that this version does not know (kind ${kind}).` }));
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
