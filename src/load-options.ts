import { BadRequestError } from "./errors.js";
import type { AutoOption } from "./fit.js";
import type { NativeLoadOptions } from "./native.js";
import { engineOptions, type OptionRow } from "./options.js";
import { didYouMean } from "./suggest.js";

type ValueOf<Row extends OptionRow> = Row["type"] extends "boolean"
  ? boolean
  : Row["type"] extends "string"
    ? Row extends { readonly values: readonly (infer Value)[] }
      ? Value
      : string
    : Row extends { readonly auto: true }
      ? number | "auto"
      : number;

/** The engine options of the option table, by name. */
export type EngineOptions = {
  [Row in (typeof engineOptions)[number] as Row["name"]]?: ValueOf<Row> | undefined;
};

/** Options of `Engine.load`. Ranges and defaults of the engine options are in the option table (src/options.ts). */
export interface LoadOptions extends EngineOptions {
  /** Path of the GGUF file. */
  model: string;
  /** Id that answers carry and `GET /v1/models` lists; default: the model's own name, else the file's. */
  modelId?: string | undefined;
  /** Called with 0..1 while the model loads, on the JavaScript thread. */
  onProgress?: ((fraction: number) => void) | undefined;
  /** Ends the load; `Engine.load` then rejects with an AbortError. */
  signal?: AbortSignal | undefined;
}

/** Load options after every check. */
export interface ValidLoadOptions {
  /** An option given as "auto" has its default here. */
  native: NativeLoadOptions;
  auto: AutoOption[];
  modelId: string | undefined;
  onProgress: ((fraction: number) => void) | undefined;
  signal: AbortSignal | undefined;
}

const ownNames = ["model", "modelId", "onProgress", "signal"];

/** @throws {BadRequestError} `param` is the option's name. */
export function validateLoadOptions(options: LoadOptions): ValidLoadOptions {
  if (typeof options !== "object" || options === null) {
    throw new BadRequestError("Engine.load needs an options object with 'model'.", "model", "invalid_option");
  }
  const known = [...ownNames, ...engineOptions.map(({ name }) => name)];
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new BadRequestError(`Unknown option: '${name}'.${didYouMean(name, known)}`, name, "unknown_option");
    }
  }
  const { model, modelId, onProgress, signal } = options;
  if (typeof model !== "string" || model === "") throw wrongOption("model", "the path of a GGUF file");
  if (modelId !== undefined && (typeof modelId !== "string" || modelId === "")) {
    throw wrongOption("modelId", "a string that is not empty");
  }
  if (onProgress !== undefined && typeof onProgress !== "function") throw wrongOption("onProgress", "a function");
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw wrongOption("signal", "an AbortSignal");

  const values = Object.fromEntries(
    engineOptions.map((row) => {
      const given = isAuto(row, options[row.name]) ? undefined : options[row.name];
      return [row.name, checkOption(row, given ?? row.default)];
    }),
  ) as Omit<NativeLoadOptions, "model">;
  const auto = engineOptions.filter((row) => isAuto(row, options[row.name])).map(({ name }) => name as AutoOption);
  return { native: { model, ...values }, auto, modelId, onProgress, signal };
}

const isAuto = (row: OptionRow, value: unknown) => row.auto === true && value === "auto";

/** The value, if it fits its row. */
function checkOption(row: OptionRow, value: unknown): number | boolean | string {
  if (row.type === "boolean" && typeof value === "boolean") return value;
  if (row.type === "string" && typeof value === "string" && (row.values?.includes(value) ?? true)) return value;
  if ((row.type === "number" || row.type === "integer") && typeof value === "number" && fits(row, value)) return value;
  throw wrongOption(row.name, rangeOf(row));
}

function fits(row: OptionRow, value: number): boolean {
  if (row.type === "integer" ? !Number.isSafeInteger(value) : !Number.isFinite(value)) return false;
  return (
    value >= (row.minimum ?? -Infinity) &&
    value > (row.exclusiveMinimum ?? -Infinity) &&
    value <= (row.maximum ?? Infinity)
  );
}

/** A row's type and range in words, e.g. "an integer from 1 to 256". */
export function rangeOf(row: OptionRow): string {
  if (row.values !== undefined) return `one of ${row.values.join(", ")}`;
  const article = row.type === "integer" ? "an" : "a";
  const lower = row.minimum === undefined ? undefined : `from ${row.minimum}`;
  const above = row.exclusiveMinimum === undefined ? lower : `above ${row.exclusiveMinimum}`;
  const upper =
    row.maximum === undefined ? undefined : `${above?.startsWith("above") ? "and at most" : "to"} ${row.maximum}`;
  const auto = row.auto ? 'or "auto"' : undefined;
  return [`${article} ${row.type}`, above, upper, auto].filter((part) => part !== undefined).join(" ");
}

function wrongOption(name: string, expected: string): BadRequestError {
  return new BadRequestError(`Invalid option '${name}': expected ${expected}.`, name, "invalid_option");
}
