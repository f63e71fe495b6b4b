import { BadRequestError } from "../errors.js";
import { type SamplingOptionName, samplingOptions } from "../options.js";
import type { SchemaRequest } from "../schema/compiler.js";
import { didYouMean } from "../suggest.js";
import { harmlessFields, internalFields, pendingFields } from "./fields.js";
import { toTemplateMessages } from "./messages.js";
import { checkSize, isObject, type PlainObject, toPlain } from "./plain.js";
import { knownFields } from "./request-schema.js";
import { toJsonFormat } from "./response-format.js";
import { type LogitBias, toBreakers, toLogitBias, toSamplers } from "./sampling.js";
import { schemaError } from "./schema-error.js";
import { validate } from "./validator.generated.js";

/** A request after every check that needs no model. */
export interface ValidRequest {
  /** For the chat template. */
  messages: PlainObject[];
  stream: boolean;
  includeUsage: boolean;
  /** -1: until the context is full. */
  maxTokens: number;
  stop: string[];
  /** "": none. */
  grammar: string;
  /** The schema of the whole answer; undefined: text. */
  jsonFormat: SchemaRequest | undefined;
  /** -1: none. */
  logprobs: number;
  n: number;
  cachePrompt: boolean;
  cacheKey: string;
  /** Smaller ones are served first. */
  priority: number;
  /** 0: none. */
  timeoutMs: number;
  /** 0: none. */
  predictMs: number;
  /** Only the options that were given. */
  sampling: Partial<Record<SamplingOptionName, number>>;
  logitBias: LogitBias;
  samplers: readonly string[];
  dryBreakers: readonly string[];
  ignoreEos: boolean;
  minTokens: number;
}

/** Fields that are only judged, never passed on, and those with schemas, whose nulls mean something: they keep them. */
const passive = new Set([
  ...[...pendingFields, ...harmlessFields].map(({ name }) => name),
  "response_format",
  "grammar_json_functions",
]);

/**
 * Checks the body of a chat completion, all of it, before anything reaches the model. `null` means absent; `model` may
 * name anything, for an engine has one model; of max_tokens and max_completion_tokens the smaller one holds.
 *
 * @throws {BadRequestError} with `param` naming the top-level field.
 */
export function validateRequest(body: unknown): ValidRequest {
  if (!isObject(body)) throw new BadRequestError("The request must be a JSON object.", null, "invalid_type");
  checkSize(body);
  const fields = ownFields(body);

  const data: PlainObject = Object.create(null);
  for (const [name, value] of fields) data[name] = passive.has(name) ? value : toPlain(value);
  if (!validate(data)) {
    const error = validate.errors?.at(-1);
    if (error === undefined) throw new BadRequestError("The request is invalid.", null);
    throw schemaError(error, data);
  }
  refusePending(fields);

  const stream = data.stream === true;
  const jsonFormat = toJsonFormat(data);
  return {
    messages: toTemplateMessages(data.messages as PlainObject[]),
    stream,
    includeUsage: includesUsage(data.stream_options, stream),
    maxTokens: smallest([data.max_tokens, data.max_completion_tokens, data.n_predict]),
    stop: typeof data.stop === "string" ? [data.stop] : [...((data.stop as string[] | undefined) ?? [])],
    grammar: (data.grammar as string | undefined) ?? "",
    jsonFormat,
    logprobs: topLogprobs(data),
    n: (data.n as number | undefined) ?? 1,
    cachePrompt: data.cache_prompt !== false,
    cacheKey: (data.prompt_cache_key as string | undefined) ?? "",
    priority: (data.priority as number | undefined) ?? 0,
    timeoutMs: (data.timeout_ms as number | undefined) ?? 0,
    predictMs: Math.max(0, (data.t_max_predict_ms as number | undefined) ?? 0),
    sampling: Object.fromEntries(
      samplingOptions.filter(({ name }) => data[name] !== undefined).map(({ name }) => [name, data[name]]),
    ),
    logitBias: toLogitBias(data.logit_bias),
    samplers: toSamplers(data.samplers),
    dryBreakers: toBreakers(data.dry_sequence_breakers),
    ignoreEos: data.ignore_eos === true,
    minTokens: (data.min_tokens as number | undefined) ?? 0,
  };
}

/** The request's own fields that are not null. Unknown ones are refused: a misspelt option must not be silent. */
function ownFields(body: PlainObject): Map<string, unknown> {
  const fields = new Map<string, unknown>();
  for (const name of Object.keys(body)) {
    if (internalFields.has(name)) {
      const message = `'${name}' is not for clients: it comes from the model's chat template.`;
      throw new BadRequestError(message, name, "unsupported_parameter");
    }
    if (!knownFields.has(name)) {
      const shown = name.length > 64 ? `${name.slice(0, 64)}…` : name;
      throw new BadRequestError(
        `Unknown parameter: '${shown}'.${didYouMean(name, knownFields)}`,
        shown,
        "unknown_parameter",
      );
    }
    const value = body[name];
    if (value !== null && value !== undefined) fields.set(name, value);
  }
  return fields;
}

function refusePending(fields: ReadonlyMap<string, unknown>): void {
  for (const { name, neutral, accepted } of pendingFields) {
    if (!fields.has(name) || neutral(fields.get(name))) continue;
    throw new BadRequestError(`'${name}' is not supported yet (accepted: ${accepted}).`, name, "unsupported_parameter");
  }
}

function includesUsage(options: unknown, stream: boolean): boolean {
  if (!isObject(options)) return false;
  if (!stream) {
    throw new BadRequestError("'stream_options' is only allowed with 'stream': true.", "stream_options");
  }
  if (options.include_obfuscation === true) {
    throw new BadRequestError(
      "'stream_options.include_obfuscation' is not supported yet (accepted: false).",
      "stream_options",
      "unsupported_parameter",
    );
  }
  return options.include_usage === true;
}

/** llama-server's n_probs asks for as many top_logprobs. */
function topLogprobs({ logprobs, top_logprobs, n_probs }: PlainObject): number {
  const top = top_logprobs as number | undefined;
  const most = typeof n_probs === "number" && n_probs > 0 ? n_probs : undefined;
  if (logprobs === true) return top ?? most ?? 0;
  if (top !== undefined) {
    throw new BadRequestError("'top_logprobs' is only allowed with 'logprobs': true.", "top_logprobs");
  }
  if (most !== undefined && logprobs === false) {
    throw new BadRequestError("'n_probs' is not allowed with 'logprobs': false.", "n_probs");
  }
  return most ?? -1;
}

/** -1 is no limit. */
function smallest(values: readonly unknown[]): number {
  const given = values.filter((value) => typeof value === "number").filter((value) => value >= 0);
  return given.length === 0 ? -1 : Math.min(...given);
}
