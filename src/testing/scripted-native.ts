import {
  type NativeAddon,
  type NativeBuildInfo,
  type NativeEngine,
  NativeEvent,
  type NativeEventHandler,
  type NativeFailure,
  type NativeLoad,
  type NativeLoadOptions,
  type NativeMemoryEstimate,
  type NativeModelInfo,
  type NativeRequest,
  type NativeResult,
  type NativeStats,
} from "../native.js";
import { noStats } from "../no-stats.js";

/** What the scripted model does with one request. */
export interface Script {
  /** The answer, a token each; default: none. Stop strings and max_tokens of the request cut it short. */
  pieces?: readonly string[];
  /** How it ends when nothing cuts it short; default "stop". */
  finish?: "stop" | "length";
  /** Milliseconds before the first piece and between pieces; default 0, which goes by setImmediate. */
  delay?: number;
  /** The request is refused when it comes: a full queue is `{ code: "queue_full", status: 429, … }`. */
  refuse?: NativeFailure;
  /** It is refused once it was looked at, as a prompt that does not fit. */
  failFirst?: NativeFailure;
  /** It breaks after so many pieces. */
  failAfter?: { pieces: number; failure: NativeFailure };
  /** It stays in the queue, after the prompt, or after the last piece, until it is cancelled. */
  hang?: "queued" | "prompt" | "decoding";
  /** What usage and timings are made of; default: 10 prompt tokens, 4 of them cached, a token a piece. */
  result?: Partial<NativeResult>;
}

/** A request as the model gets it, after validation: defaults filled in, messages as the chat template sees them. */
export interface ScriptedRequest extends Omit<NativeRequest, "messages"> {
  /** undefined: raw text, in `prompt`. */
  messages: { role: string; content?: string; [key: string]: unknown }[] | undefined;
}

export interface ScriptedOptions {
  /** One script for all requests, or one for each; a text is an answer, a token a word. Default: empty answers. */
  script?: Script | string | ((request: ScriptedRequest, nth: number) => Script | string);
  /** What the model says about itself. */
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
  answer: Answer;
  request: NativeRequest;
  started: boolean;
  sent: number;
  cancelling: boolean;
}

/** The pieces that come out, after stop strings and token limit. */
interface Answer {
  pieces: string[];
  finish: "stop" | "length";
  /** The stop string that ended it. */
  stop?: string;
}

/** A NativeAddon that plays scripts in place of a model. It keeps what tests ask about. */
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

  /** One megabyte of weights, and one for each 1,024 cells. */
  estimateMemory(options: NativeLoadOptions): Promise<NativeMemoryEstimate> {
    const contextSize = options.contextSize || 2048;
    const use = { weights: 1 << 20, cache: contextSize << 10, compute: 0, output: 0 };
    const device = { ...use, name: "CPU", host: true, total: 2 ** 40, free: 2 ** 40 };
    return Promise.resolve({ contextSize, trainingContext: 2048, layers: 4, sequences: 8, devices: [device] });
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
      memory: { weights: 1 << 20, cache: 1 << 20, compute: 0, output: 0 },
      ...this.#options.info,
    };
    let closing: Promise<void> | undefined;
    return {
      info,
      submit: (request) => this.#submit(request),
      cancel: (id) => this.#cancel(id),
      take: (id, weight) => this.taken.push([id, weight]),
      stats: () => this.#stats(),
      tokenize: async (text) => Int32Array.from(text, (character) => character.codePointAt(0) ?? 0),
      pieces: async (tokens) => {
        const texts = Array.from(tokens, (code) => new TextEncoder().encode(String.fromCodePoint(code)));
        let end = 0;
        const ends = Int32Array.from(texts, ({ length }) => {
          end += length;
          return end;
        });
        return { bytes: Buffer.concat(texts), ends };
      },
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
    const chosen = this.#choose(request);
    this.requests.push(request);
    if (chosen.refuse !== undefined) throw nativeError(chosen.refuse);
    const answer = answerOf(chosen, request);
    const id = this.#nextId++;
    const live: Live = { id, script: chosen, answer, request, started: false, sent: 0, cancelling: false };
    this.#live.set(live.id, live);
    this.#later(live, chosen.delay ?? 0);
    return live.id;
  }

  #choose(request: NativeRequest): Script {
    const { script = {} } = this.#options;
    const messages = request.messages === undefined ? undefined : JSON.parse(request.messages);
    const chosen = typeof script === "function" ? script({ ...request, messages }, this.requests.length) : script;
    return typeof chosen === "string" ? { pieces: chosen.match(/\s*\S+|\s+$/g) ?? [] } : chosen;
  }

  #later(live: Live, delay: number): void {
    const step = () => this.#step(live);
    if (delay === 0) setImmediate(step);
    else setTimeout(step, delay);
  }

  #step(live: Live): void {
    const { hang, delay = 0, failFirst, failAfter } = live.script;
    if (live.cancelling || !this.#live.has(live.id)) return;
    const piece = live.answer.pieces[live.sent];
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
      if (live.request.logprobs >= 0)
        this.#send(live, NativeEvent.Logprobs, 0, logprobsOf(piece, live.request.logprobs));
      this.#send(live, NativeEvent.Delta, 1, piece);
      this.#later(live, delay);
    } else if (hang !== "decoding") {
      this.#finish(live, live.answer.finish === "length" ? 1 : 0);
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
      ...(live.answer.stop === undefined ? {} : { stop: live.answer.stop }),
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
      ...noStats,
      ...this.#counts,
      queued: live.length - decoding,
      decoding,
      cancelledDecoding: this.#counts.cancelled,
      sequences: decoding,
      cells: 2048,
      stepsBySequences: Array(9).fill(0),
    };
  }
}

/** What is left of a script's pieces under the request's limits: of a stop string nothing comes out. */
function answerOf({ pieces = [], finish = "stop" }: Script, { maxTokens, stop }: NativeRequest): Answer {
  const limit = maxTokens < 0 ? pieces.length : Math.min(maxTokens, pieces.length);
  const out: string[] = [];
  let text = "";
  for (const piece of pieces.slice(0, limit)) {
    const before = text.length;
    text += piece;
    // The earliest to begin of those that are complete first, as the engine does it.
    const found = stop
      .map((each) => ({ each, at: text.indexOf(each) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at)[0];
    if (found !== undefined) {
      return { pieces: cut([...out, piece], before + piece.length - found.at), finish: "stop", stop: found.each };
    }
    out.push(piece);
  }
  return { pieces: out, finish: limit < pieces.length ? "length" : finish };
}

/** Takes so many UTF-16 units from the end, but leaves the pieces: each is a token. */
function cut(pieces: string[], units: number): string[] {
  let left = units;
  return pieces
    .map((_, i) => pieces[pieces.length - 1 - i] ?? "")
    .map((piece) => {
      const kept = piece.slice(0, Math.max(0, piece.length - left));
      left = Math.max(0, left - piece.length);
      return kept;
    })
    .reverse();
}

/** The piece has probability 1/2, invented others half of what is left. */
function logprobsOf(piece: string, count: number): string {
  const entry = (token: string, halvings: number) => ({
    token,
    logprob: -Math.LN2 * halvings,
    bytes: [...new TextEncoder().encode(token)],
  });
  const top = Array.from({ length: count }, (_, i) => entry(i === 0 ? piece : `${piece}~${i}`, i + 1));
  return JSON.stringify({ ...entry(piece, 1), top_logprobs: top });
}

/** An Error as the addon throws it. */
function nativeError({ message, ...fields }: NativeFailure): Error {
  return Object.assign(new Error(message), fields);
}
