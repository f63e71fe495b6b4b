import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { isCollection, isPair, isScalar, LineCounter, type Node, parseDocument } from "yaml";
import { isObject, type PlainObject } from "../openai/plain.js";
import { type Converted, fromLocalAi } from "./localai.js";
import { ConfigError, type HostConfig, type ModelConfig, validateHostConfig } from "./spec.js";

const largestFile = 4 * 1024 * 1024;

/** A key that does not have the effect that its author may expect. */
export interface ConfigRemark {
  file: string;
  line: number;
  key: string;
  reason: string;
}

export interface ReadConfig {
  config: HostConfig;
  remarks: ConfigRemark[];
}

type Path = readonly (string | number)[];

/** Where a model of the configuration was written. */
interface Origin {
  source: Source;
  /** Leads from one of our keys to the place in the file. */
  locate(path: Path): Path;
}

/**
 * Reads a configuration:
 * - a YAML or JSON file with `models` in our keys (HostConfig),
 * - one with a model, or a list of models, in LocalAI's keys,
 * - a folder: each YAML file in it, and each GGUF file that none of them names, in the order of their names.
 *
 * File names in it begin at its own folder. Everything is checked but the models themselves.
 *
 * @throws {ConfigError} the message has file, line and key.
 */
export async function readHostConfig(path: string): Promise<ReadConfig> {
  const info = await stat(path).catch((error: unknown) => {
    throw new ConfigError([], `${path}: ${error instanceof Error ? error.message : String(error)}`);
  });
  const reader = new Reader();
  if (info.isDirectory()) await reader.folder(path);
  else await reader.file(path);
  return reader.done();
}

class Reader {
  readonly #models: ModelConfig[] = [];
  readonly #origins: Origin[] = [];
  readonly #remarks: ConfigRemark[] = [];
  #rest: Omit<HostConfig, "models"> = {};
  #whole: Source | undefined;

  async folder(path: string): Promise<void> {
    const names = (await readdir(path)).sort();
    for (const name of names) if (/\.ya?ml$/i.test(name)) await this.file(join(path, name));
    const taken = new Set(this.#models.map((model) => resolve(String(model.path))));
    for (const name of names) {
      const file = resolve(path, name);
      // Of a split model the first part stands for all.
      if (!/\.gguf$/i.test(name) || taken.has(file) || /-(?!00001)\d{5}-of-\d{5}\.gguf$/i.test(name)) continue;
      this.#models.push({ name: basename(name).replace(/\.gguf$/i, ""), path: file });
      this.#origins.push({ source: new Source(file, ""), locate: () => [] });
    }
    if (this.#models.length === 0) throw new ConfigError([], `${path}: there are no models in it`);
  }

  async file(path: string): Promise<void> {
    const { size } = await stat(path);
    if (size > largestFile) throw new ConfigError([], `${path}: larger than ${largestFile / 1024 / 1024} MiB`);
    const source = new Source(path, await readFile(path, "utf8"));
    const value = source.value();
    if (isObject(value) && "models" in value) this.#native(source, value);
    else if (Array.isArray(value)) for (const [i, model] of value.entries()) this.#localAi(source, model, [i]);
    else this.#localAi(source, value, []);
  }

  /** Checks all of it together. */
  done(): ReadConfig {
    const config = { ...this.#rest, models: this.#models };
    try {
      validateHostConfig(config);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      throw this.#located(error);
    }
    return { config, remarks: this.#remarks };
  }

  #native(source: Source, value: PlainObject): void {
    const { models, ...rest } = value;
    this.#rest = rest;
    this.#whole = source;
    if (!Array.isArray(models)) throw source.error(["models"], "expected a list");
    for (const [i, model] of models.entries()) {
      if (!isObject(model)) throw source.error(["models", i], "expected keys and values");
      const path = typeof model.path === "string" ? resolve(dirname(source.path), model.path) : model.path;
      this.#models.push(withDraft({ ...model, path } as unknown as ModelConfig, dirname(source.path)));
      this.#origins.push({ source, locate: (inner) => ["models", i, ...inner] });
    }
  }

  #localAi(source: Source, value: unknown, at: Path): void {
    if (!isObject(value)) throw source.error(at, "expected a model: keys and values");
    const converted: Converted = fromLocalAi(value, at, source.path);
    this.#models.push(converted.config as unknown as ModelConfig);
    this.#origins.push({ source, locate: (inner) => originOf(converted.origins, inner) ?? [...at, ...missing(inner)] });
    for (const remark of converted.remarks) this.#remarks.push({ ...source.place(remark.at), reason: remark.reason });
  }

  #located(error: ConfigError): ConfigError {
    const [first, index, ...inner] = error.at;
    const origin = first === "models" && typeof index === "number" ? this.#origins[index] : undefined;
    // The message names the place by our keys; here it has the file's own.
    const reason = error.message.slice(error.message.indexOf(": ") + 2);
    if (origin !== undefined) return origin.source.error(origin.locate(inner), reason);
    return this.#whole === undefined ? error : this.#whole.error(error.at, reason);
  }
}

/** The longest beginning of a path that has an origin, and what follows. */
function originOf(origins: ReadonlyMap<string, Path>, path: Path): Path | undefined {
  for (let length = path.length; length > 0; length--) {
    const origin = origins.get(path.slice(0, length).join("."));
    if (origin !== undefined) return [...origin, ...path.slice(length)];
  }
  return undefined;
}

/** LocalAI's place of a key that is not there. */
const missing = ([key]: Path): Path => (key === "path" ? ["parameters", "model"] : key === undefined ? [] : [key]);

function withDraft(model: ModelConfig, folder: string): ModelConfig {
  const draft = isObject(model.options) ? model.options.draftModel : undefined;
  if (typeof draft !== "string" || draft === "") return model;
  return { ...model, options: { ...model.options, draftModel: resolve(folder, draft) } };
}

/** One file, and where in it things are. */
class Source {
  readonly path: string;
  readonly #lines = new LineCounter();
  readonly #document;

  constructor(path: string, text: string) {
    this.path = path;
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, uniqueKeys: true });
  }

  /** @throws {ConfigError} it is no YAML. */
  value(): unknown {
    const [error] = this.#document.errors;
    if (error !== undefined) {
      const { line, col } = this.#lines.linePos(error.pos[0]);
      throw new ConfigError([], `${this.path}:${line}:${col}: ${error.message}`);
    }
    try {
      return this.#document.toJS({ maxAliasCount: 100 });
    } catch (problem) {
      throw new ConfigError([], `${this.path}: ${problem instanceof Error ? problem.message : String(problem)}`);
    }
  }

  /** The line of a key, or of the nearest one around it. */
  place(at: Path): { file: string; line: number; key: string } {
    let offset = 0;
    let node: unknown = this.#document.contents;
    for (const key of at) {
      if (!isCollection(node)) break;
      const item: unknown =
        typeof key === "number"
          ? node.items[key]
          : node.items.find((each) => isPair(each) && isScalar(each.key) && each.key.value === key);
      const start = isPair(item) ? (item.key as Node).range?.[0] : (item as Node | undefined)?.range?.[0];
      if (item === undefined || start === undefined) break;
      offset = start;
      node = isPair(item) ? item.value : item;
    }
    return { file: this.path, line: this.#lines.linePos(offset).line || 1, key: at.join(".") };
  }

  error(at: Path, reason: string): ConfigError {
    const { file, line, key } = this.place(at);
    const error = new ConfigError(at, reason);
    error.message = `${file}:${line}: ${key === "" ? "" : `${key}: `}${reason}`;
    return error;
  }
}
