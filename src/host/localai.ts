import { dirname, resolve } from "node:path";
import { isObject, type PlainObject } from "../openai/plain.js";
import { validateRequest } from "../openai/validate.js";
import { engineOptions } from "../options.js";
import { containers, leaves, prefixes, type Rule } from "./localai-keys.js";

type Path = readonly (string | number)[];

/** Something in a file that does not have the effect that LocalAI gives it. */
export interface Remark {
  at: Path;
  reason: string;
}

/** One model of LocalAI's, as one of ours. */
export interface Converted {
  config: PlainObject;
  /** For each key of ours ("options.contextSize") where its value came from. */
  origins: Map<string, Path>;
  remarks: Remark[];
}

/**
 * Reads a model's configuration in LocalAI's keys. Where a key means the same here, it is taken over; where it means
 * something else, has no effect or is not known, there is a remark. Under `tokenloop` a file may have keys of our own, which
 * LocalAI passes over.
 *
 * @param file its folder is where file names begin.
 */
export function fromLocalAi(source: PlainObject, at: Path, file: string): Converted {
  const converted: Converted = { config: {}, origins: new Map(), remarks: [] };
  const context = new Conversion(converted, at, dirname(file));
  context.convert(source, []);
  return converted;
}

class Conversion {
  readonly #converted: Converted;
  readonly #at: Path;
  readonly #folder: string;

  constructor(converted: Converted, at: Path, folder: string) {
    this.#converted = converted;
    this.#at = at;
    this.#folder = folder;
  }

  convert(source: PlainObject, path: readonly string[]): void {
    for (const [key, value] of Object.entries(source)) {
      const here = [...path, key];
      const name = here.join(".");
      if (name === "tokenloop" && isObject(value)) this.#own(value, here);
      else if (name === "options" && Array.isArray(value)) this.#backendOptions(value, here);
      else if (containers.has(name) && isObject(value)) this.convert(value, here);
      else this.#leaf(name, value, here);
    }
  }

  #leaf(name: string, value: unknown, here: readonly string[]): void {
    const known = Object.hasOwn(leaves, name) ? leaves[name] : undefined;
    const rule = known ?? prefixes.find(([prefix]) => name.startsWith(prefix))?.[1];
    if (rule === undefined) this.#remark(here, "unknown key");
    else if (value !== null && value !== undefined) this.#apply(rule, value, here);
  }

  #apply(rule: Rule, value: unknown, here: Path): void {
    switch (rule.kind) {
      case "harmless":
        return;
      case "neutral":
        if (!rule.values.includes(value as never)) this.#remark(here, rule.why);
        return;
      case "unsupported":
        this.#remark(here, rule.why);
        return;
      case "default":
        if (rule.unset?.includes(value as never)) return;
        this.#default(rule.to, value, here, rule.why);
        return;
      case "option":
        if (rule.unset?.includes(value as never)) return;
        this.#option(rule.to, rule.path ? resolve(this.#folder, String(value)) : (rule.map?.(value) ?? value), here);
        return;
      case "own":
        this.#set([rule.to], rule.path ? resolve(this.#folder, String(value)) : value, here);
        if (rule.why !== undefined) this.#remark(here, rule.why);
    }
  }

  /** A field of requests; one that requests cannot have here is remarked upon. */
  #default(field: string, value: unknown, here: Path, why: string | undefined): void {
    if (why !== undefined && !isAccepted({ [field]: value })) this.#remark(here, why);
    else this.#set(["defaults", field], value, here);
  }

  #option(name: string, value: unknown, here: Path): void {
    if (engineOptions.some((row) => row.name === name)) this.#set(["options", name], value, here);
    else this.#remark(here, "there is no such option");
  }

  /** LocalAI's `options: ["name:value"]`, which it hands to its llama.cpp server. */
  #backendOptions(entries: readonly unknown[], here: Path): void {
    for (const [i, entry] of entries.entries()) {
      const [, name = "", value = ""] = /^([^:]*):?(.*)$/.exec(String(entry)) ?? [];
      if (name === "use_jinja" || name === "jinja") continue;
      if (name === "parallel" || name === "n_parallel") this.#option("parallel", Number(value), [...here, i]);
      else this.#remark([...here, i], `unknown option '${name}'`);
    }
  }

  #own(keys: PlainObject, here: Path): void {
    for (const [key, value] of Object.entries(keys)) {
      const nested = (key === "options" || key === "defaults") && isObject(value);
      if (!nested) this.#set([key], value, [...here, key]);
      else for (const [name, member] of Object.entries(value)) this.#set([key, name], member, [...here, key, name]);
    }
  }

  #set(to: readonly string[], value: unknown, here: Path): void {
    const [first = "", second] = to;
    const { config, origins } = this.#converted;
    if (second === undefined) {
      config[first] = value;
    } else {
      const group = isObject(config[first]) ? config[first] : {};
      group[second] = value;
      config[first] = group;
    }
    origins.set(to.join("."), [...this.#at, ...here]);
  }

  #remark(here: Path, reason: string): void {
    this.#converted.remarks.push({ at: [...this.#at, ...here], reason });
  }
}

function isAccepted(field: PlainObject): boolean {
  try {
    validateRequest({ ...field, messages: [{ role: "user", content: "-" }], stream: true });
    return true;
  } catch {
    return false;
  }
}
