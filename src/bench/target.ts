/** What the bench reads of a chunk, from whatever server. */
export interface Chunk {
  readonly model?: unknown;
  readonly system_fingerprint?: unknown;
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: unknown;
      readonly reasoning_content?: unknown;
      readonly tool_calls?: unknown;
    };
    readonly finish_reason?: unknown;
  }[];
  readonly usage?: {
    readonly prompt_tokens?: unknown;
    readonly completion_tokens?: unknown;
    readonly prompt_tokens_details?: { readonly cached_tokens?: unknown } | null;
  } | null;
}

/** @param at performance.now() when it came; chunks that came together have the same. */
export type OnChunk = (chunk: Chunk, at: number) => void;

/** CPU and memory of the process that computes, since some moment. */
export interface Usage {
  /** Milliseconds of CPU of all threads, and of the JavaScript thread. */
  readonly cpuMs: number | undefined;
  readonly jsCpuMs: number | undefined;
  /** Bytes of resident memory now. */
  readonly rss: number | undefined;
}

/** What a load is sent to. */
export interface Target {
  readonly kind: "engine" | "server";
  /** Id that requests name. */
  readonly model: string;
  /** What is known about it, for the record. */
  readonly about: Readonly<Record<string, unknown>>;
  /**
   * Sends a streamed request and hands out its chunks. Resolves when the stream has ended as it should; rejects with a
   * RequestFailure, or with the signal's reason once it is aborted.
   */
  send(body: Readonly<Record<string, unknown>>, signal: AbortSignal, onChunk: OnChunk): Promise<void>;
  /** Undefined where nobody can know: a server elsewhere. */
  usage(): Promise<Usage | undefined>;
  close(): Promise<void>;
}

/** A request that failed; `type` is what failures are counted by. */
export class RequestFailure extends Error {
  readonly type: string;

  constructor(type: string, message: string) {
    super(message);
    this.name = "RequestFailure";
    this.type = type;
  }
}
