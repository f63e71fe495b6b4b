import {
  type NativeAddon,
  type NativeBuildInfo,
  type NativeEngine,
  NativeEvent,
  type NativeEventHandler,
  type NativeFailure,
  type NativeLoad,
  type NativeLoadOptions,
  type NativeModelInfo,
  type NativeRequest,
  type NativeResult,
  type NativeStats,
} from "../../src/native.js";

/** What the scripted engine does with one request. */
export interface Script {
  /** Texts of the deltas, in order; each covers one token. */
  pieces?: string[];
  finish?: "stop" | "length";
  /** Milliseconds before the prompt event and between deltas; 0 goes by setImmediate. */
  delay?: number;
  /** Thrown by submit. */
  refuse?: NativeFailure;
  /** Sent in place of the prompt event. */
  failFirst?: NativeFailure;
  /** Sent after this many deltas. */
  failAfter?: { pieces: number; failure: NativeFailure };
  /** Stops after the prompt event (or, with "queued", before it) until it is cancelled. */
  hang?: "queued" | "prompt" | "decoding";
  result?: Partial<NativeResult>;
}

export interface ScriptedOptions {
  script?: Script | ((request: NativeRequest, nth: number) => Script);
  info?: Partial<NativeModelInfo>;
  /** Load takes this long, reporting progress; never ends with Infinity. */
  loadDelay?: number;
  loadFailure?: NativeFailure;
  /** Milliseconds from cancel to the last event; 0 goes by setImmediate. With Infinity the script ends first, as if
   * the cancel had come too late. */
  cancelDelay?: number;
  /** The addon forgets the last events on close, which it must not. */
  forgetLastEvents?: boolean;
}

interface Live {
  id: number;
  script: Script;
  request: NativeRequest;
  started: boolean;
  sent: number;
  cancelling: boolean;
}

/** A NativeAddon that plays scripts in place of a model. It keeps what the tests ask about. */
export class ScriptedNative implements NativeAddon {
  readonly requests: NativeRequest[] = [];
  readonly cancels: number[] = [];
  /** What readers took: request and weight. */
  readonly taken: [id: number, weight: number][] = [];
  loadOptions: NativeLoadOptions | undefined;
  closed = 0;
  readonly #options: ScriptedOptions;
  readonly #live = new Map<number, Live>();
  #emit: NativeEventHandler = () => undefined;
  #nextId = 1;
  #counts = { finished: 0, cancelled: 0, failed: 0 };

  constructor(options: ScriptedOptions = {}) {
    this.#options = options;
  }

  /** Requests without a last event. */
  get live(): number {
    return this.#live.size;
  }

  buildInfo(): NativeBuildInfo {
    return { llamaBuild: 10679, llamaCommit: "50f068fff", devices: ["CPU"], systemInfo: "", sanitized: false };
  }

  loadModel(
    options: NativeLoadOptions,
    onEvents: NativeEventHandler,
    onProgress: ((fraction: number) => void) | undefined,
  ): NativeLoad {
    this.loadOptions = options;
    this.#emit = onEvents;
    const { loadDelay = 0, loadFailure } = this.#options;
    let cancel: () => void = () => undefined;
    const promise = new Promise<NativeEngine>((resolve, reject) => {
      cancel = () => {
        setImmediate(() =>
          reject(nativeError({ code: "load_cancelled", status: 499, param: null, message: "cancelled" })),
        );
      };
      if (loadDelay === Infinity) return;
      setTimeout(() => {
        if (loadFailure !== undefined) return reject(nativeError(loadFailure));
        onProgress?.(0.5);
        onProgress?.(1);
        resolve(this.#engine());
      }, loadDelay);
    });
    return { promise, cancel };
  }

  #engine(): NativeEngine {
    const info: NativeModelInfo = {
      description: "scripted",
      name: "Scripted Model",
      parameters: 1,
      size: 1,
      vocabSize: 1000,
      trainingContext: 2048,
      contextSize: 2048,
      parallel: 8,
      batchSize: 512,
      chatTemplate: "",
      ...this.#options.info,
    };
    let closing: Promise<void> | undefined;
    return {
      info,
      submit: (request) => this.#submit(request),
      cancel: (id) => this.#cancel(id),
      take: (id, weight) => this.taken.push([id, weight]),
      stats: () => this.#stats(),
      tokenize: async (text) => Int32Array.from(text, (c) => c.charCodeAt(0)),
      applyTemplate: async (messages) => messages,
      savePrefix: async () => ({ tokens: 0, bytes: 0 }),
      restorePrefix: async () => ({ tokens: 0, bytes: 0 }),
      close: () => {
        closing ??= this.#close();
        return closing;
      },
    };
  }

  #submit(request: NativeRequest): number {
    const { script = {} } = this.#options;
    const chosen = typeof script === "function" ? script(request, this.requests.length) : script;
    this.requests.push(request);
    if (chosen.refuse !== undefined) throw nativeError(chosen.refuse);
    const live: Live = { id: this.#nextId++, script: chosen, request, started: false, sent: 0, cancelling: false };
    this.#live.set(live.id, live);
    this.#later(live, chosen.delay ?? 0);
    return live.id;
  }

  #later(live: Live, delay: number): void {
    const step = () => this.#step(live);
    if (delay === 0) setImmediate(step);
    else setTimeout(step, delay);
  }

  #step(live: Live): void {
    const { script } = live;
    const { pieces = [], hang, delay = 0, failFirst, failAfter } = script;
    if (live.cancelling || !this.#live.has(live.id)) return;
    const piece = pieces[live.sent];
    if (!live.started) {
      if (hang === "queued") return;
      if (failFirst !== undefined) {
        this.#fail(live, failFirst);
        return;
      }
      live.started = true;
      this.#send(live, NativeEvent.Prompt, this.#result(live).prompt_tokens, "");
      if (hang !== "prompt") this.#later(live, delay);
    } else if (failAfter !== undefined && live.sent === failAfter.pieces) {
      this.#fail(live, failAfter.failure);
    } else if (piece !== undefined) {
      live.sent++;
      this.#send(live, NativeEvent.Delta, 1, piece);
      this.#later(live, delay);
    } else if (hang !== "decoding") {
      this.#finish(live, script.finish === "length" ? 1 : 0);
    }
  }

  #cancel(id: number): void {
    this.cancels.push(id);
    const live = this.#live.get(id);
    const { cancelDelay = 0 } = this.#options;
    if (live === undefined || live.cancelling || cancelDelay === Infinity) return;
    live.cancelling = true;
    const end = () => this.#finish(live, 2);
    if (cancelDelay === 0) setImmediate(end);
    else setTimeout(end, cancelDelay);
  }

  async #close(): Promise<void> {
    this.closed++;
    await new Promise((resolve) => setImmediate(resolve));
    for (const live of [...this.#live.values()]) {
      if (this.#options.forgetLastEvents) this.#live.delete(live.id);
      else this.#finish(live, 2);
    }
  }

  #finish(live: Live, reason: number): void {
    if (!this.#live.delete(live.id)) return;
    if (reason === 2) this.#counts.cancelled++;
    else this.#counts.finished++;
    this.#send(live, NativeEvent.Finished, reason, JSON.stringify(this.#result(live)));
  }

  #fail(live: Live, failure: NativeFailure): void {
    if (!this.#live.delete(live.id)) return;
    this.#counts.failed++;
    this.#send(live, NativeEvent.Failed, 0, JSON.stringify(failure));
  }

  #result(live: Live): NativeResult {
    return {
      prompt_tokens: 10,
      cached_tokens: 4,
      completion_tokens: live.sent,
      seed: 1,
      queue_ms: 1,
      prompt_ms: 3,
      predicted_ms: 10,
      ...live.script.result,
    };
  }

  /** The same to every choice: all of them say what the script says. */
  #send(live: Live, kind: number, value: number, text: string): void {
    for (let choice = 0; choice < live.request.n; choice++) {
      // Other requests' text around it, as in a real batch: offsets must be honoured.
      this.#emit(`..${text}..`, Int32Array.from([live.id, choice, kind, value, 2, 2 + text.length, 0, 0, 1, 0, 0, 2]));
    }
  }

  #stats(): NativeStats {
    const live = [...this.#live.values()];
    const decoding = live.filter(({ started }) => started).length;
    return {
      queued: live.length - decoding,
      prefilling: 0,
      decoding,
      paused: 0,
      ...this.#counts,
      cancelledQueued: 0,
      cancelledPrefilling: 0,
      cancelledDecoding: this.#counts.cancelled,
      timedOut: 0,
      stalled: 0,
      sequences: decoding,
      cellsUsed: 0,
      cellsCached: 0,
      cells: 2048,
      steps: 0,
      stepsBySequences: Array(9).fill(0),
      promptTokens: 0,
      cachedTokens: 0,
      generatedTokens: 0,
      draftedTokens: 0,
      acceptedTokens: 0,
      sharedSteps: 0,
      peakSequences: 0,
      preemptions: 0,
      parkings: 0,
      pauses: 0,
      evictions: 0,
      decodeMs: 0,
      sampleMs: 0,
      loopMs: 0,
    };
  }
}

/** An Error as the addon throws it. */
function nativeError({ message, ...fields }: NativeFailure): Error {
  return Object.assign(new Error(message), fields);
}
