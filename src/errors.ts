/**
 * Every error that tokenloop throws. Each has a stable `code`, an HTTP `status`, OpenAI's `type`, and the `param` that
 * caused it; names and statuses follow what OpenAI's own client tells apart, so handling written for it carries over.
 */
export interface TokenloopErrorOptions {
  /** Stable, machine-readable reason. */
  code: string;
  /** HTTP status that the fetch handler answers with. */
  status: number;
  /** OpenAI's coarse error class, e.g. "invalid_request_error". */
  type: string;
  /** Top-level request field or option that caused it; null when there is none. */
  param?: string | null;
  cause?: unknown;
}

export class TokenloopError extends Error {
  readonly code: string;
  readonly status: number;
  readonly type: string;
  readonly param: string | null;

  constructor(message: string, options: TokenloopErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = options.code;
    this.status = options.status;
    this.type = options.type;
    this.param = options.param ?? null;
  }
}

/** The request or an option is wrong (400). */
export class BadRequestError extends TokenloopError {
  constructor(message: string, param: string | null, code = "invalid_value", status = 400) {
    super(message, { code, status, type: "invalid_request_error", param });
  }
}

/** An API key is needed, and none or a wrong one was given (401). */
export class AuthenticationError extends TokenloopError {
  constructor(message: string) {
    super(message, { code: "invalid_api_key", status: 401, type: "invalid_request_error" });
  }
}

/** Unknown model or route (404). */
export class NotFoundError extends TokenloopError {
  constructor(message: string, code = "not_found", param: string | null = null) {
    super(message, { code, status: 404, type: "invalid_request_error", param });
  }
}

/** The engine's queue is full (429); `retryAfter` is in seconds: about when the next place will be free. */
export class RateLimitError extends TokenloopError {
  readonly retryAfter: number;

  constructor(message: string, code = "queue_full", retryAfter = 1) {
    super(message, { code, status: 429, type: "rate_limit_error" });
    this.retryAfter = retryAfter;
  }
}

/** The engine is closed or closing (503). */
export class EngineClosedError extends TokenloopError {
  constructor(message = "The engine is closed.", code = "engine_closed") {
    super(message, { code, status: 503, type: "server_error" });
  }
}

/** Something inside went wrong (500, unless the engine said otherwise). */
export class InternalError extends TokenloopError {
  constructor(message: string, code = "internal_error", cause?: unknown, status = 500, param: string | null = null) {
    super(message, { code, status, type: "server_error", param, cause });
  }
}

/** The model file cannot be loaded: missing, unreadable, not a GGUF, too big. `path` is the file. */
export class ModelLoadError extends TokenloopError {
  readonly path: string;

  constructor(message: string, path: string, code = "model_load_failed", cause?: unknown) {
    super(message, { code, status: 500, type: "server_error", param: "model", cause });
    this.path = path;
  }
}

/**
 * The model file is damaged, hostile, or none that can be loaded. `where` is the part of it that is wrong: "header", a
 * metadata key, or a tensor.
 */
export class ModelFileError extends ModelLoadError {
  declare readonly code: ModelFileCode;
  readonly where: string | null;

  constructor(path: string, code: ModelFileCode, where: string | null, reason: string) {
    super(`Cannot load the model '${path}': ${where === null ? "" : `${where}: `}${reason}.`, path, code);
    this.where = where;
  }
}

/**
 * - gguf_truncated: the file ends too early.
 * - gguf_foreign: no GGUF, or one that holds something else than a language model.
 * - gguf_unsupported: a version or architecture that is not supported.
 * - gguf_corrupt: it contradicts itself, or asks for what no model needs.
 * - gguf_unreadable: the system does not let us read it.
 */
export type ModelFileCode = "gguf_truncated" | "gguf_foreign" | "gguf_unsupported" | "gguf_corrupt" | "gguf_unreadable";

/** The addon cannot be loaded. The message lists every path tried, each reason, and what to do. */
export class NativeLoadError extends TokenloopError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "native_load_failed", status: 500, type: "server_error", cause });
  }
}

/** The caller's signal was aborted. `cause` is the signal's reason. */
export class AbortError extends TokenloopError {
  constructor(reason?: unknown) {
    super("The request was aborted.", { code: "ABORT_ERR", status: 499, type: "aborted", cause: reason });
    // The name that every check for an abort looks at, also under a bundler that renames classes.
    this.name = "AbortError";
  }
}

/** OpenAI's error body. All four keys are always there. */
export interface ErrorBody {
  error: { message: string; type: string; param: string | null; code: string | null };
}

export function toErrorBody(error: unknown): ErrorBody {
  if (error instanceof TokenloopError) {
    return { error: { message: error.message, type: error.type, param: error.param, code: error.code } };
  }
  // What is not ours may hold paths or other internals: it stays out of the answer.
  return { error: { message: "Internal error.", type: "server_error", param: null, code: "internal_error" } };
}

/** The fields of a failure as the addon reports it, in an event or on a rejection. */
interface NativeFailureLike {
  code?: unknown;
  status?: unknown;
  param?: unknown;
  message?: unknown;
}

/** Maps a failure event or a rejection of the addon to one of the classes above. */
export function fromNative(failure: unknown): TokenloopError {
  if (failure instanceof TokenloopError) return failure;
  if (typeof failure !== "object" || failure === null) return new InternalError(String(failure));
  const { code: rawCode, status, param: rawParam, message: rawMessage } = failure as NativeFailureLike;
  const code = typeof rawCode === "string" && rawCode !== "" ? rawCode : "internal_error";
  const param = typeof rawParam === "string" && rawParam !== "" ? rawParam : null;
  const message = typeof rawMessage === "string" && rawMessage !== "" ? rawMessage : `The engine failed: ${code}.`;
  if (code === "engine_closed") return new EngineClosedError(message);
  if (status === 429) {
    const { retry_after_ms: retryAfterMs } = failure as { retry_after_ms?: unknown };
    return new RateLimitError(message, code, typeof retryAfterMs === "number" ? retryAfterMs / 1000 : 1);
  }
  if (status === 404) return new NotFoundError(message, code, param);
  if (status === 503) return new EngineClosedError(message, code);
  if (typeof status === "number" && status >= 400 && status < 500) {
    return new BadRequestError(message, param, code, status);
  }
  const cause = failure instanceof Error ? failure : undefined;
  return new InternalError(message, code, cause, typeof status === "number" && status >= 500 ? status : 500, param);
}
