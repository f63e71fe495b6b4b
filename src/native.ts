/**
 * The one typed contract of the addon. Everything that crosses between TypeScript and C++ is named here and nowhere
 * else; test/native/contract.test.ts checks that the addon exports exactly this.
 *
 * Threads: every function here is called on the JavaScript thread and returns without waiting for the model. Results
 * come back through promises, or through `onEvents`.
 */
export interface NativeAddon {
  /** Versions and compiled-in backends. */
  buildInfo(): NativeBuildInfo;
  /**
   * Starts to load a model on a native thread. `onEvents` then belongs to the engine: it is called on the JavaScript
   * thread with everything that happened to the engine's requests since the last call.
   */
  loadModel(
    options: NativeLoadOptions,
    onEvents: NativeEventHandler,
    onProgress: ((fraction: number) => void) | undefined,
  ): NativeLoad;
  /**
   * What these options would take, asked of llama.cpp without allocating it, on a native thread. Rejects as a load does.
   */
  estimateMemory(options: NativeLoadOptions): Promise<NativeMemoryEstimate>;
}

/** Bytes by what they are for. */
export interface NativeMemoryUse {
  /** The model's tensors. */
  weights: number;
  /** KV cells, and the states of recurrent layers. */
  cache: number;
  /** Scratch of the graphs. */
  compute: number;
  /** Logits. */
  output: number;
}

export interface NativeDeviceEstimate extends NativeMemoryUse {
  /** ggml's name, e.g. "CPU" or "CUDA0". */
  name: string;
  /** Whether it is the CPU's memory. */
  host: boolean;
  /** Bytes that the device has, and that are free now; 0 where it does not say. */
  total: number;
  free: number;
}

export interface NativeMemoryEstimate {
  /** KV cells, after defaults and llama.cpp's padding. */
  contextSize: number;
  trainingContext: number;
  /** Layers that gpuLayers counts, without the output layer. */
  layers: number;
  /** Sequences that the context holds: running ones and kept ones. */
  sequences: number;
  devices: NativeDeviceEstimate[];
}

export interface NativeBuildInfo {
  /** llama.cpp's build number, e.g. 10679. */
  llamaBuild: number;
  /** llama.cpp's commit, abbreviated. */
  llamaCommit: string;
  /** ggml devices found at run time, e.g. `["CPU"]` or `["CUDA0", "CPU"]`. */
  devices: string[];
  /** llama.cpp's own line on instruction sets in use. */
  systemInfo: string;
  /** Whether the addon was compiled with AddressSanitizer. */
  sanitized: boolean;
}

export interface NativeLoadOptions {
  /** Path of the GGUF file. */
  model: string;
  /** KV cells shared by all sequences; 0 takes min(the model's training context, 8192). */
  contextSize: number;
  /** Sequences decoded at the same time, 1..256. */
  parallel: number;
  /** llama.cpp's n_batch: most tokens in one llama_decode. */
  batchSize: number;
  /** llama.cpp's n_ubatch: most tokens in one graph. */
  microBatchSize: number;
  /** Threads for decoding; 0 takes one per physical core. */
  threads: number;
  /** Threads for prompt processing; 0 takes `threads`. */
  threadsBatch: number;
  /** Layers on the GPU; -1 takes all. */
  gpuLayers: number;
  /** Requests that may wait; one more is refused. */
  queueSize: number;
  /** Milliseconds that a step with prompt tokens should take while others decode. */
  stepTargetMs: number;
  /** Keep the cells of finished requests for prompts that begin alike. */
  prefixCache: boolean;
  /** Threads beside the loop's own that sample and compute masks; -1: what the decode's threads leave free. */
  samplingThreads: number;
  /** Weight of unread records (see `recordWeight`) at which a request pauses. */
  streamBufferBytes: number;
  /** Milliseconds that a paused request waits for its reader; 0: for ever. */
  stallTimeoutMs: number;
  /** Most tokens guessed ahead in one step; 0: none. */
  draftTokens: number;
  /** Model that guesses; "": n-grams of the text so far. */
  draftModel: string;
  /** Map the file instead of reading it. */
  mmap: boolean;
  /** Keep the model's pages in RAM. */
  mlock: boolean;
  /** Fused attention kernels. */
  flashAttention: "auto" | "on" | "off";
  /** Jinja template that replaces the model's own; "" keeps the model's. */
  chatTemplate: string;
}

export interface NativeLoad {
  promise: Promise<NativeEngine>;
  /** Ends the load; the promise then rejects with code "load_cancelled". No effect once it has settled. */
  cancel(): void;
}

export interface NativeEngine {
  readonly info: NativeModelInfo;
  /**
   * Queues a request and returns its admission id (1..2^31-1, never one that is still live). Throws synchronously with
   * code "queue_full" (status 429), "engine_closed" (503) or "invalid_request" (400, with `param`). Everything later,
   * also a template or prompt error, comes as an event.
   */
  submit(request: NativeRequest): number;
  /**
   * Cancels by admission id, in any state, all answers of the request. Their last events are then `Finished` with reason
   * "cancelled"; their KV cells are free by then. Unknown or finished ids are ignored.
   */
  cancel(id: number): void;
  /**
   * The reader of a request took records of this weight (see `recordWeight`). What is not reported counts as unread, and
   * a request with too much of that pauses. Unknown or finished ids are ignored.
   */
  take(id: number, weight: number): void;
  stats(): NativeStats;
  /** Tokenises on a native thread. Rejects with code "engine_closed". */
  tokenize(text: string, addSpecial: boolean, parseSpecial: boolean): Promise<Int32Array>;
  /**
   * Texts of tokens, control tokens with their names. Rejects with code "invalid_request" (400, `param` "tokens") for one
   * that the vocabulary does not have.
   */
  pieces(tokens: Int32Array): Promise<NativePieces>;
  /** Renders the chat template for a JSON array of messages. Rejects with code "invalid_messages" (400). */
  applyTemplate(messages: string): Promise<string>;
  /**
   * Writes the cells of a prompt cache key to a file, on a native thread; running requests wait while they are copied.
   * Rejects with code "prefix_not_found" (404), "unsupported_model" (400), "file_not_written" (500).
   */
  savePrefix(key: string, path: string): Promise<NativePrefix>;
  /**
   * Reads them back. Rejects with code "file_not_found" (404), "prefix_file_corrupt", "prefix_file_foreign",
   * "prefix_too_large", "unsupported_model" (400).
   */
  restorePrefix(key: string, path: string): Promise<NativePrefix>;
  /**
   * Cancels what runs (each request gets its last event first), joins the loop, frees the model. Idempotent: later calls
   * return the same promise.
   */
  close(): Promise<void>;
}

/** A prompt cache that was saved or restored. */
export interface NativePrefix {
  /** Tokens whose cells it has; of a restored one those that were not there yet. */
  tokens: number;
  /** Of the file; of a restored one, of the cells in it. */
  bytes: number;
}

export interface NativeModelInfo {
  /** llama.cpp's description, e.g. "qwen3 0.6B Q4_0". */
  description: string;
  /** `general.name` of the GGUF, "" when absent. */
  name: string;
  parameters: number;
  /** Bytes of all tensors. */
  size: number;
  vocabSize: number;
  trainingContext: number;
  /** KV cells in the unified cache (after llama.cpp's padding). */
  contextSize: number;
  parallel: number;
  batchSize: number;
  chatTemplate: string;
  /** What llama.cpp allocated, to a hundredth of a MiB; mapped weights count as a whole. */
  memory: NativeMemoryUse;
}

/** The bytes of tokens, one after the other; `ends[i]` is where those of token i end. */
export interface NativePieces {
  bytes: Uint8Array;
  ends: Int32Array;
}

/** Exactly one of `messages`, `prompt` and `promptTokens` is set. */
export interface NativeRequest {
  /** JSON array of OpenAI messages, for the chat template. User text in it never becomes a control token. */
  messages?: string;
  /** Raw text, tokenised with special tokens parsed. */
  prompt?: string;
  /** Token ids, as they are; nothing is put before them. */
  promptTokens?: Int32Array;
  /** Most tokens to generate, ≥ 0; -1 generates until the context is full. */
  maxTokens: number;
  /** Stop strings, none empty. The text never contains one, nor any part of one that ended it. */
  stop: string[];
  /** GBNF that the answer follows from its first byte; "": none. A fault in it comes as an event, code "invalid_grammar". */
  grammar: string;
  /** Most likely tokens to report beside each chosen one, 0..20; -1 reports no logprobs at all. */
  logprobs: number;
  /**
   * Answers to the same prompt, 1..128. Each has a choice index, a place in the queue and a last event of its own; answer i
   * draws with seed + i. The prompt is computed once where prefixes are reused.
   */
  n: number;
  /** Whether it may use the cells of earlier requests that begin alike, and leave its own to later ones. */
  cachePrompt: boolean;
  /** Requests of different keys never share cells. */
  cacheKey: string;
  /** Smaller ones are served first. */
  priority: number;
  /** Milliseconds from submission to the last event, after which it fails with "request_timeout" (408); 0: none. */
  timeoutMs: number;
  /** Milliseconds from the first token on, after which the answer ends with "length" once it has a line; 0: none. */
  predictMs: number;
  sampling: NativeSampling;
}

/** One field per row of the option table (src/options.ts), by the same name, and those that are no number. */
export interface NativeSampling {
  temperature: number;
  top_k: number;
  top_p: number;
  min_p: number;
  typical_p: number;
  repeat_penalty: number;
  frequency_penalty: number;
  presence_penalty: number;
  repeat_last_n: number;
  mirostat: number;
  mirostat_tau: number;
  mirostat_eta: number;
  top_n_sigma: number;
  xtc_probability: number;
  xtc_threshold: number;
  dynatemp_range: number;
  dynatemp_exponent: number;
  dry_multiplier: number;
  dry_base: number;
  dry_allowed_length: number;
  dry_penalty_last_n: number;
  min_keep: number;
  /** 0..2^32-1; -1 draws one. */
  seed: number;
  /** Pairs: token id, bias up to 1e9; -Infinity bans the token. */
  logit_bias: Float64Array;
  /** Texts at which DRY takes a repetition to be over. */
  dry_sequence_breakers: string[];
  /** Which samplers run, in order, by llama.cpp's names (src/options.ts). */
  samplers: string[];
  /** Tokens that end generation are never drawn, and not before so many tokens, unless nothing else is allowed. */
  ignore_eos: boolean;
  min_tokens: number;
}

/** Kinds of event record. */
export const NativeEvent = {
  /** The prompt is tokenised; value = prompt tokens. Once per choice, first. */
  Prompt: 0,
  /** Text was generated; value = tokens it covers (0 possible at the end: held back text). Always well-formed. */
  Delta: 1,
  /** Last event; value = reason (see `finishReasons`); text = JSON of NativeResult. */
  Finished: 2,
  /** Last event; text = JSON of NativeFailure. */
  Failed: 3,
  /** Text = JSON of one OpenAI logprobs entry: of a token whose text ends in the next delta, or ended before. */
  Logprobs: 4,
} as const;

/** Int32 fields of one record, in order: request, choice, kind, value, text start, text end (UTF-16 units). */
export const recordSize = 6;

/**
 * What a record of kind Delta or Logprobs counts for until it is read, in bytes: its text, and what a chunk costs
 * besides. The loop counts the same (binding/engine/request.h).
 */
export function recordWeight(units: number): number {
  return 256 + units;
}

/** Values of a Finished record. */
export const finishReasons = ["stop", "length", "cancelled"] as const;
export type NativeFinishReason = (typeof finishReasons)[number];

/** All text since the last call in one string, and the records that point into it. */
export type NativeEventHandler = (text: string, records: Int32Array) => void;

export interface NativeResult {
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
  /** The seed that was used. */
  seed: number;
  /** The stop string that ended it, if one did. */
  stop?: string;
  /** Milliseconds from admission to the first decode of its prompt, for its prompt, for its tokens. */
  queue_ms: number;
  prompt_ms: number;
  predicted_ms: number;
  /** Tokens that were guessed ahead, and those of them that were right; absent where nothing was guessed. */
  drafted_tokens?: number;
  accepted_tokens?: number;
}

export interface NativeFailure {
  code: string;
  status: number;
  param: string | null;
  message: string;
  /** When to try again, where that is known. */
  retry_after_ms?: number;
}

export interface NativeStats {
  /** Requests by state. */
  queued: number;
  prefilling: number;
  decoding: number;
  /** Of these, requests whose reader is behind. */
  paused: number;
  /** Requests that reached their last event, by how. */
  finished: number;
  cancelled: number;
  failed: number;
  /** Of the cancelled ones, in which state. */
  cancelledQueued: number;
  cancelledPrefilling: number;
  cancelledDecoding: number;
  /** Of the failed ones: their time was up, and nobody read them. */
  timedOut: number;
  stalled: number;
  /** Running requests that hold KV cells now. */
  sequences: number;
  /** KV cells of running requests, cells kept for reuse (freed when needed), and all there are. */
  cellsUsed: number;
  cellsCached: number;
  cells: number;
  /** llama_decode calls, and tokens in them; prompt tokens whose cells were there already are cached ones. */
  steps: number;
  /** Steps by sequences decoded: element i counts those with at most 2^i of them, and more than 2^(i-1). */
  stepsBySequences: number[];
  promptTokens: number;
  cachedTokens: number;
  generatedTokens: number;
  /** Tokens that were guessed ahead, and those of them that were right. */
  draftedTokens: number;
  acceptedTokens: number;
  /** Steps that decoded two or more sequences, and most sequences in one step. */
  sharedSteps: number;
  peakSequences: number;
  /** Requests whose cells were taken back and that were computed again. */
  preemptions: number;
  /** Requests that gave their place to others while their reader was behind, or to ones of higher priority. */
  parkings: number;
  /** Times that a request paused for its reader. */
  pauses: number;
  /** Kept sequences whose cells were freed for others. */
  evictions: number;
  /** Milliseconds in llama_decode, in sampling, in the whole loop while it had work. */
  decodeMs: number;
  sampleMs: number;
  loopMs: number;
}

export { loadNative } from "./load-native.js";
