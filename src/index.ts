export {
  type Chat,
  type Completions,
  Engine,
  type EngineInfo,
  type RequestOptions,
  type TextCompletions,
} from "./engine.js";
export {
  AbortError,
  AuthenticationError,
  BadRequestError,
  EngineClosedError,
  type ErrorBody,
  InternalError,
  type ModelFileCode,
  ModelFileError,
  ModelLoadError,
  NativeLoadError,
  NotFoundError,
  RateLimitError,
  TokenloopError,
  toErrorBody,
} from "./errors.js";
export type { MemoryEstimate } from "./estimate.js";
export type { AutoOption, Choice } from "./fit.js";
export { ModelHost } from "./host/host.js";
export type { HostEvent, HostRuntime, ModelStatus } from "./host/runtime.js";
export { ConfigError, type HostConfig, type ModelConfig } from "./host/spec.js";
export type { HandlerOptions } from "./http/access.js";
export type { FetchHandler } from "./http/handler.js";
export { type NodeListener, toNodeListener } from "./http/node.js";
export type { EngineOptions, LoadOptions } from "./load-options.js";
export type {
  NativeBuildInfo as BuildInfo,
  NativeDeviceEstimate as DeviceEstimate,
  NativeMemoryUse as MemoryUse,
  NativeModelInfo as ModelInfo,
  NativeStats as EngineStats,
} from "./native.js";
export type * from "./openai/completion-params.js";
export { limits } from "./openai/limits.js";
export type * from "./openai/params.js";
export type * from "./openai/types.js";
export { engineOptions, type OptionRow, samplingOptions } from "./options.js";
export { SchemaError, type SchemaErrorCode } from "./schema/error.js";
export type { ChatCompletionStream } from "./stream.js";
