/** What the page reads of a chunk. */
export interface Chunk {
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: ToolCallDelta[];
    };
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: { cached_tokens?: number };
  } | null;
  timings?: { prompt_ms: number; predicted_per_second: number; queue_ms: number };
}

export interface ToolCallDelta {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

export interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | null;
  reasoning_content?: string;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}

/** What a finished answer took. Milliseconds. */
export interface Timing {
  tokens: number | undefined;
  tokensPerSecond: number | undefined;
  firstTokenMs: number | undefined;
  totalMs: number;
  promptTokens: number | undefined;
  cachedTokens: number | undefined;
}

/** The state of every loaded model; src/page/live.ts sends it. */
export interface Live {
  models: LiveModel[];
}

export interface LiveModel {
  id: string;
  parallel: number;
  queued: number;
  prefilling: number;
  decoding: number;
  paused: number;
  cells: number;
  cellsUsed: number;
  cellsCached: number;
  promptTokens: number;
  cachedTokens: number;
  generatedTokens: number;
  steps: number;
  sharedSteps: number;
}
