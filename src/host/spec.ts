import { BadRequestError, TokenloopError } from "../errors.js";
import { type EngineOptions, validateLoadOptions } from "../load-options.js";
import { isObject, type PlainObject } from "../openai/plain.js";
import { validateRequest } from "../openai/validate.js";
import { RegexError } from "../regex/parse.js";
import { didYouMean } from "../suggest.js";
import { compilePostprocess, type TextStage } from "./postprocess.js";

/** One model of a host, as it is configured. */
export interface ModelConfig {
  /** What requests call it, and answers and `GET /v1/models` do. */
  name: string;
  /** Path of the GGUF file. */
  path: string;
  /** Other names that requests may use. */
  aliases?: string[] | undefined;
  /** Options of `Engine.load`. */
  options?: EngineOptions | undefined;
  /** Fields of a request that hold where a request does not have them (null is as good as absent). */
  defaults?: Record<string, unknown> | undefined;
  /** Strings that end every answer, besides those of the request; a request with `stop: []` switches them off. */
  stop?: string[] | undefined;
  /** System message of requests that have none. */
  systemPrompt?: string | undefined;
  /** Text that every answer begins with, not seen by the model. */
  replyPrefix?: string | undefined;
  /** Puts the rendered prompt before each answer. */
  echo?: boolean | undefined;
  /** Regular expressions (RE2's syntax) whose matches are deleted from answers. */
  cutStrings?: string[] | undefined;
  /** Regular expressions; the first match of each, one after another, is the answer. Where none matches, all of it. */
  extractRegex?: string[] | undefined;
  /** For each: taken off an answer's beginning, then white space off both ends. */
  trimSpace?: string[] | undefined;
  /** For each: taken off an answer's end, then white space off both ends. */
  trimSuffix?: string[] | undefined;
  /** Loads it with the host and not with its first request. Default false. */
  preload?: boolean | undefined;
  /** Seconds without a request after which it is unloaded. Default 0: never. */
  idleUnloadSeconds?: number | undefined;
}

/** Configuration of a ModelHost, in code or in a file. */
export interface HostConfig {
  models: ModelConfig[];
  /** Name of the model for requests that name none; default: the first. */
  defaultModel?: string | undefined;
  /** Bytes that loaded models may take together, by `Engine.estimate`. Default 0: no limit. */
  memoryBudget?: number | undefined;
  /** Models that may be loaded at the same time. Default 0: no limit. */
  maxLoaded?: number | undefined;
}

/** A configuration is wrong; `at` leads to the value, e.g. ["models", 0, "path"]. */
export class ConfigError extends BadRequestError {
  readonly at: readonly (string | number)[];

  constructor(at: readonly (string | number)[], reason: string) {
    super(
      `${at.length === 0 ? "The configuration" : format(at)}: ${reason}`,
      at.length === 0 ? null : format(at),
      "invalid_config",
    );
    this.at = at;
  }
}

const format = (at: readonly (string | number)[]) =>
  at.map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${key}`)).join("");

/** A model after every check that needs no file. */
export interface ModelSpec {
  readonly config: ModelConfig;
  readonly name: string;
  readonly path: string;
  readonly aliases: readonly string[];
  readonly options: EngineOptions;
  readonly defaults: PlainObject;
  readonly stop: readonly string[];
  readonly systemPrompt: string;
  readonly replyPrefix: string;
  readonly echo: boolean;
  /** Makes the stage that an answer's text goes through; undefined: it stays as it is. */
  readonly postprocess: (() => TextStage) | undefined;
  readonly preload: boolean;
  readonly idleUnloadMs: number;
}

export interface HostSpec {
  readonly models: readonly ModelSpec[];
  readonly defaultModel: ModelSpec;
  readonly memoryBudget: number;
  readonly maxLoaded: number;
}

type Key = string | number;
type Check = (value: unknown, at: readonly Key[]) => void;

const string: Check = (value, at) => {
  if (typeof value !== "string" || value === "") throw new ConfigError(at, "expected a string that is not empty");
};
const anyString: Check = (value, at) => {
  if (typeof value !== "string") throw new ConfigError(at, "expected a string");
};
const boolean: Check = (value, at) => {
  if (typeof value !== "boolean") throw new ConfigError(at, "expected true or false");
};
const list =
  (item: Check): Check =>
  (value, at) => {
    if (!Array.isArray(value)) throw new ConfigError(at, "expected a list");
    for (const [i, each] of value.entries()) item(each, [...at, i]);
  };
const object: Check = (value, at) => {
  if (!isObject(value)) throw new ConfigError(at, "expected keys and values");
};
const number =
  (least: number, most: number): Check =>
  (value, at) => {
    if (typeof value !== "number" || !(value >= least && value <= most)) {
      throw new ConfigError(at, `expected a number from ${least} to ${most}`);
    }
  };

/** setTimeout takes no more. */
const longestSeconds = 2_147_483;

const modelKeys: Record<keyof ModelConfig, Check> = {
  name: string,
  path: string,
  aliases: list(string),
  options: object,
  defaults: object,
  stop: list(string),
  systemPrompt: anyString,
  replyPrefix: anyString,
  echo: boolean,
  cutStrings: list(string),
  extractRegex: list(string),
  trimSpace: list(anyString),
  trimSuffix: list(anyString),
  preload: boolean,
  idleUnloadSeconds: number(0, longestSeconds),
};
const hostKeys: Record<keyof HostConfig, Check> = {
  models: list(object),
  defaultModel: string,
  memoryBudget: number(0, Number.MAX_SAFE_INTEGER),
  maxLoaded: number(0, 10_000),
};

/** @throws {ConfigError} */
export function validateHostConfig(config: unknown): HostSpec {
  checkKeys(config, hostKeys, []);
  const { models: configs = [], defaultModel, memoryBudget = 0, maxLoaded = 0 } = config as Partial<HostConfig>;
  if (configs.length === 0) throw new ConfigError(["models"], "there is none");
  const models = configs.map((model, i) => validateModel(model, ["models", i]));
  const names = new Map<string, number>();
  models.forEach((model, i) => {
    for (const name of [model.name, ...model.aliases]) {
      const other = names.get(name);
      if (other !== undefined) throw new ConfigError(["models", i], `models[${other}] is called '${name}', too`);
      names.set(name, i);
    }
  });
  const index = defaultModel === undefined ? 0 : names.get(defaultModel);
  const chosen = index === undefined ? undefined : models[index];
  if (chosen === undefined) {
    const reason = `there is no model '${defaultModel}'.${didYouMean(defaultModel ?? "", names.keys())}`;
    throw new ConfigError(["defaultModel"], reason);
  }
  return { models, defaultModel: chosen, memoryBudget, maxLoaded };
}

function checkKeys(value: unknown, keys: Readonly<Record<string, Check>>, at: readonly Key[]): void {
  object(value, at);
  for (const [key, member] of Object.entries(value as PlainObject)) {
    const check = Object.hasOwn(keys, key) ? keys[key] : undefined;
    if (check === undefined) throw new ConfigError([...at, key], `unknown key.${didYouMean(key, Object.keys(keys))}`);
    if (member !== undefined) check(member, [...at, key]);
  }
}

function validateModel(config: ModelConfig, at: readonly Key[]): ModelSpec {
  checkKeys(config, modelKeys, at);
  for (const key of ["name", "path"] as const)
    if (config[key] === undefined) throw new ConfigError([...at, key], "missing");
  const { name, path, aliases = [], options = {}, defaults = {}, stop = [] } = config;
  checkOptions({ ...options, model: path, modelId: name }, at);
  checkDefaults(defaults, at);
  return {
    config,
    name,
    path,
    aliases,
    options,
    defaults: { ...defaults },
    stop,
    systemPrompt: config.systemPrompt ?? "",
    replyPrefix: config.replyPrefix ?? "",
    echo: config.echo ?? false,
    postprocess: compileAll(config, at),
    preload: config.preload ?? false,
    idleUnloadMs: (config.idleUnloadSeconds ?? 0) * 1000,
  };
}

function checkOptions(options: Parameters<typeof validateLoadOptions>[0], at: readonly Key[]): void {
  for (const own of ["onProgress", "signal"]) {
    if (own in options) throw new ConfigError([...at, "options", own], "unknown option");
  }
  try {
    validateLoadOptions(options);
  } catch (error) {
    throw fromField(error, [...at, "options"]);
  }
}

/** Those that are the request itself cannot be a model's. */
const requestOnly = ["messages", "model", "stream", "stop"];

function checkDefaults(defaults: PlainObject, at: readonly Key[]): void {
  for (const name of requestOnly) {
    if (!(name in defaults)) continue;
    const advice = name === "stop" ? "a model's stop strings belong to its key 'stop'" : "this is up to the request";
    throw new ConfigError([...at, "defaults", name], advice);
  }
  try {
    // Fields that are for streams only are allowed, and left out of others.
    validateRequest({ ...defaults, messages: [{ role: "user", content: "-" }], stream: true });
  } catch (error) {
    throw fromField(error, [...at, "defaults"]);
  }
}

/** An error about a field, as one about its place in the configuration. */
function fromField(error: unknown, at: readonly Key[]): unknown {
  if (!(error instanceof TokenloopError)) return error;
  return new ConfigError(error.param === null ? at : [...at, error.param], error.message);
}

function compileAll(config: ModelConfig, at: readonly Key[]): (() => TextStage) | undefined {
  const { cutStrings = [], extractRegex = [], trimSpace = [], trimSuffix = [] } = config;
  const none = { cutStrings: [], extractRegex: [], trimSpace: [], trimSuffix: [] };
  for (const [key, patterns] of [
    ["cutStrings", cutStrings],
    ["extractRegex", extractRegex],
  ] as const) {
    patterns.forEach((pattern, i) => {
      try {
        compilePostprocess({ ...none, cutStrings: [pattern] });
      } catch (error) {
        if (!(error instanceof RegexError)) throw error;
        const reason = `the regular expression is wrong at ${error.position}: ${error.message}`;
        throw new ConfigError([...at, key, i], reason);
      }
    });
  }
  return compilePostprocess({ cutStrings, extractRegex, trimSpace, trimSuffix });
}
