/** What the suite's JSON Schemas (schemas.mjs) say, for the compiler. */

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number } | null;
  completion_tokens_details?: { reasoning_tokens?: number } | null;
}

export interface TopLogprob {
  token: string;
  logprob: number;
  bytes: number[] | null;
}

export interface LogprobEntry extends TopLogprob {
  top_logprobs: TopLogprob[];
}

export interface Logprobs {
  content: LogprobEntry[] | null;
  refusal: LogprobEntry[] | null;
}

export interface ToolCall {
  id: string;
  type: string;
  function: { name: string; arguments: string };
}

export interface Message {
  role: string;
  content: string | null;
  refusal: string | null;
  tool_calls?: ToolCall[];
}

export interface Choice {
  index: number;
  message: Message;
  logprobs: Logprobs | null;
  finish_reason: string;
}

export interface Completion {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: Choice[];
  usage: Usage;
}

export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: string;
  function?: { name?: string; arguments?: string };
}

export interface Delta {
  role?: string;
  content?: string | null;
  refusal?: string | null;
  tool_calls?: ToolCallDelta[];
}

export interface ChunkChoice {
  index: number;
  delta: Delta;
  logprobs?: Logprobs | null;
  finish_reason: string | null;
}

export interface Chunk {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: ChunkChoice[];
  usage?: Usage | null;
}

export interface TextChoice {
  index: number;
  text: string;
  finish_reason: string | null;
  logprobs: TextLogprobs | null;
}

export interface TextLogprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[] | null;
  text_offset: number[];
}

export interface TextCompletion {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: TextChoice[];
  usage?: Usage | null;
}

export interface Model {
  id: string;
  object: string;
  created: number;
  owned_by: string;
}

export interface ModelList {
  object: string;
  data: Model[];
}

export interface ErrorBody {
  error: { message: string; type: string; param: string | null; code: string | null };
}

/** A request's body; the suite also sends wrong ones. */
export type Body = Record<string, unknown>;

export type Fetch = (url: string, init?: RequestInit) => Promise<Response>;

export interface TargetOptions {
  /** With the version: http://127.0.0.1:8080/v1. */
  baseURL: string;
  /** Default: the process's own. */
  fetch?: Fetch;
  apiKey?: string | undefined;
  /** Default: the first that /models lists. */
  model?: string | undefined;
  /** Milliseconds for one answer; default 120,000. */
  timeout?: number;
}

export interface Check {
  /** Stable, e.g. "stream.role-once". */
  id: string;
  /** What holds, in one sentence. */
  title: string;
  /**
   * The fields or routes that a server may honestly not have: a refusal that names one of them is no failure. Without
   * any, everybody must have it.
   */
  optional?: string[];
  run(context: Context): Promise<void>;
}

export interface Context {
  target: import("./target.mjs").Target;
  /** Draws numbers from 0 to 1, the same for the same seed. */
  random(): number;
  /** How many random requests a property test sends. */
  runs: number;
}

export type Outcome = "pass" | "fail" | "refused" | "skipped";

export interface Result {
  id: string;
  title: string;
  outcome: Outcome;
  /** Why, for all but "pass". */
  reason: string;
  milliseconds: number;
}

export interface SuiteOptions extends TargetOptions {
  /** Runs only checks whose id begins so. */
  only?: string | undefined;
  /** Default 1. */
  seed?: number | undefined;
  /** Default 20. */
  runs?: number | undefined;
  onResult?: ((result: Result) => void) | undefined;
}
