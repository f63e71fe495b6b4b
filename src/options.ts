/**
 * The one option table. Validation, documentation, CLI flags and the native request all come from these rows; a test
 * holds each default against llama.cpp's own, and each sampling row has a test of its effect.
 */
export interface OptionRow {
  /** Name in requests (sampling) or in `Engine.load` (engine options). */
  readonly name: string;
  readonly type: "number" | "integer" | "boolean" | "string";
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  /** Whether "auto" is allowed, too: what fits into memory (src/fit.ts). */
  readonly auto?: true;
  /** The strings that are allowed; absent: any. */
  readonly values?: readonly string[];
  readonly default: number | boolean | string;
  /** Long CLI flag without the dashes; absent: no flag. */
  readonly flag?: string;
  readonly description: string;
}

/** Sampling options of a request. Defaults are llama.cpp's (common_params_sampling), not OpenAI's. */
// biome-ignore format: a table, one row a line
export const samplingOptions = [
  { name: "temperature", type: "number", minimum: 0, maximum: 2, default: 0.8, flag: "temperature", description: "Divides the logits; 0 takes the most likely token, whatever the samplers beside penalties and DRY say." },
  { name: "top_k", type: "integer", minimum: 0, maximum: 2147483647, default: 40, flag: "top-k", description: "Keeps the k most likely tokens; 0 keeps all." },
  { name: "top_p", type: "number", exclusiveMinimum: 0, maximum: 1, default: 0.95, flag: "top-p", description: "Keeps the smallest set of tokens whose probabilities sum to p; 1 keeps all." },
  { name: "min_p", type: "number", minimum: 0, maximum: 1, default: 0.05, flag: "min-p", description: "Drops tokens less likely than this share of the most likely one; 0 drops none." },
  { name: "typical_p", type: "number", exclusiveMinimum: 0, maximum: 1, default: 1, flag: "typical-p", description: "Locally typical sampling; 1 switches it off." },
  { name: "repeat_penalty", type: "number", exclusiveMinimum: 0, maximum: 10, default: 1, flag: "repeat-penalty", description: "Divides the logit of tokens seen in the last repeat_last_n; 1 switches it off." },
  { name: "frequency_penalty", type: "number", minimum: -2, maximum: 2, default: 0, flag: "frequency-penalty", description: "Lowers a token's logit by this for each time it was seen in the last repeat_last_n." },
  { name: "presence_penalty", type: "number", minimum: -2, maximum: 2, default: 0, flag: "presence-penalty", description: "Lowers the logit of tokens seen at all in the last repeat_last_n." },
  { name: "repeat_last_n", type: "integer", minimum: -1, maximum: 1048576, default: 64, flag: "repeat-last-n", description: "How many tokens the penalties look back on; 0 switches them off, -1 takes the context size." },
  { name: "mirostat", type: "integer", minimum: 0, maximum: 2, default: 0, flag: "mirostat", description: "1 or 2 uses Mirostat of that version in place of top_k, top_p, min_p and typical_p; 0 switches it off." },
  { name: "mirostat_tau", type: "number", minimum: 0, maximum: 100, default: 5, flag: "mirostat-tau", description: "Mirostat's target entropy." },
  { name: "mirostat_eta", type: "number", minimum: 0, maximum: 10, default: 0.1, flag: "mirostat-eta", description: "Mirostat's learning rate." },
  { name: "top_n_sigma", type: "number", minimum: -1, maximum: 100, default: -1, flag: "top-n-sigma", description: "Keeps tokens whose logit is within so many standard deviations of the largest; 0 and below switch it off." },
  { name: "xtc_probability", type: "number", minimum: 0, maximum: 1, default: 0, flag: "xtc-probability", description: "How often XTC acts: it drops every token above xtc_threshold but the least likely of them; 0 switches it off." },
  { name: "xtc_threshold", type: "number", minimum: 0, maximum: 1, default: 0.1, flag: "xtc-threshold", description: "Probability from which on XTC drops tokens; above 0.5 there are never two." },
  { name: "dynatemp_range", type: "number", minimum: 0, maximum: 2, default: 0, flag: "dynatemp-range", description: "Lets the temperature move by so much to both sides, lower where the model is sure; 0 switches it off." },
  { name: "dynatemp_exponent", type: "number", minimum: 0, maximum: 10, default: 1, flag: "dynatemp-exponent", description: "How the temperature follows the entropy within dynatemp_range." },
  { name: "dry_multiplier", type: "number", minimum: 0, maximum: 100, default: 0, flag: "dry-multiplier", description: "Strength of DRY, which lowers the logit of a token that would prolong a repetition by multiplier · base^(length - allowed length); 0 switches it off." },
  { name: "dry_base", type: "number", minimum: 1, maximum: 10, default: 1.75, flag: "dry-base", description: "DRY's base." },
  { name: "dry_allowed_length", type: "integer", minimum: 0, maximum: 1048576, default: 2, flag: "dry-allowed-length", description: "Repetitions of up to so many tokens cost nothing." },
  { name: "dry_penalty_last_n", type: "integer", minimum: -1, maximum: 1048576, default: 64, flag: "dry-penalty-last-n", description: "How many tokens DRY looks back on; 0 switches it off, -1 takes the context size." },
  { name: "min_keep", type: "integer", minimum: 0, maximum: 2147483647, default: 0, flag: "min-keep", description: "typical_p, top_p, min_p and xtc leave at least so many tokens." },
  { name: "seed", type: "integer", minimum: -9007199254740991, maximum: 9007199254740991, default: -1, flag: "seed", description: "Seed of the request's own random numbers; -1 or absent draws one, any other integer is taken modulo 2^32." },
] as const satisfies readonly OptionRow[];

/** Samplers by llama.cpp's names, in its order, with the letters of its short form. */
export const samplerNames = [
  ["penalties", "e"],
  ["dry", "d"],
  ["top_n_sigma", "s"],
  ["top_k", "k"],
  ["typ_p", "y"],
  ["top_p", "p"],
  ["min_p", "m"],
  ["xtc", "x"],
  ["temperature", "t"],
] as const;

/** Texts at which DRY takes a repetition to be over. */
export const dryBreakers: readonly string[] = ["\n", ":", '"', "*"];

/** Options of `Engine.load` and of `tokenloop serve`. */
// biome-ignore format: a table, one row a line
export const engineOptions = [
  { name: "contextSize", type: "integer", minimum: 0, maximum: 16777216, auto: true, default: 0, flag: "context-size", description: "KV cells shared by all running requests; 0 takes the model's training context, at most 8192, and auto as many as memory allows, at most that context for each of them." },
  { name: "parallel", type: "integer", minimum: 1, maximum: 256, default: 8, flag: "parallel", description: "Requests decoded at the same time." },
  { name: "batchSize", type: "integer", minimum: 1, maximum: 65536, default: 2048, flag: "batch-size", description: "Most tokens in one llama_decode (n_batch)." },
  { name: "microBatchSize", type: "integer", minimum: 1, maximum: 65536, default: 512, flag: "micro-batch-size", description: "Most tokens in one compute graph (n_ubatch)." },
  { name: "threads", type: "integer", minimum: 0, maximum: 512, default: 0, flag: "threads", description: "Threads for decoding, at most as many as the machine runs at once; 0 takes one per physical core." },
  { name: "threadsBatch", type: "integer", minimum: 0, maximum: 512, default: 0, flag: "threads-batch", description: "Threads for prompt processing; 0 takes the value of threads." },
  { name: "gpuLayers", type: "integer", minimum: -1, maximum: 100000, auto: true, default: -1, flag: "gpu-layers", description: "Layers on the GPU; -1 takes all, and auto as many as its memory holds." },
  { name: "queueSize", type: "integer", minimum: 0, maximum: 1000000, default: 512, flag: "queue-size", description: "Requests that may wait for a sequence; one more gets a 429." },
  { name: "stepTargetMs", type: "number", exclusiveMinimum: 0, maximum: 60000, default: 50, flag: "step-target-ms", description: "Milliseconds a step should take at most while prompts are processed beside running answers." },
  { name: "prefixCache", type: "boolean", default: true, flag: "prefix-cache", description: "Keeps the KV cells of finished requests, and lets prompts that begin alike share them." },
  { name: "samplingThreads", type: "integer", minimum: -1, maximum: 64, default: -1, flag: "sampling-threads", description: "Threads beside the loop's own that sample and compute grammar masks; -1 takes as many as threads and threadsBatch leave of the machine's cores, at most 7." },
  { name: "streamBufferBytes", type: "integer", minimum: 4096, maximum: 1073741824, default: 262144, flag: "stream-buffer-bytes", description: "Bytes that may wait unread in one request, a chunk counting as its text and 256 more; beyond it the request pauses until half of that is read, while others run on." },
  { name: "stallTimeoutMs", type: "integer", minimum: 0, maximum: 2147483647, default: 60000, flag: "stall-timeout-ms", description: "Milliseconds after which a paused request that nobody reads is ended with an error; 0 waits for ever." },
  { name: "draftTokens", type: "integer", minimum: 0, maximum: 64, default: 0, flag: "draft-tokens", description: "Speculative decoding: most tokens to guess ahead, confirmed by the model before they count; 0 switches it off. Guesses come from how the text went on before (n-grams), or from draftModel." },
  { name: "draftModel", type: "string", default: "", flag: "draft-model", description: "Path of a small GGUF model with the same vocabulary that guesses for this one; needs draftTokens." },
  { name: "mmap", type: "boolean", default: true, flag: "mmap", description: "Maps the model file instead of reading it." },
  { name: "mlock", type: "boolean", default: false, flag: "mlock", description: "Keeps the model's pages in RAM." },
  { name: "flashAttention", type: "string", values: ["auto", "on", "off"], default: "auto", flag: "flash-attention", description: "Fused attention kernels; auto leaves it to llama.cpp. On CPU they are faster, but round differently by batch size and place in the cache: where two tokens are nearly as likely, an answer can then depend on what runs beside it. off avoids that." },
  { name: "chatTemplate", type: "string", default: "", flag: "chat-template", description: "Jinja chat template (text) that replaces the model's own." },
] as const satisfies readonly OptionRow[];

export type SamplingOptionName = (typeof samplingOptions)[number]["name"];
export type EngineOptionName = (typeof engineOptions)[number]["name"];
