import { readFile } from "node:fs/promises";
import { type Parsed, valuesOf } from "../cli/args.js";
import { UsageError } from "../cli/io.js";
import { rangeOf } from "../load-options.js";
import type { OptionRow } from "../options.js";
import { benchOptions } from "./flags.js";
import { type Lengths, parseLengths } from "./lengths.js";
import type { Load } from "./plan.js";
import { parseSlo, type Slo } from "./slo.js";

/** The flags of a run, checked. */
export interface Settings {
  load: Load;
  warmUp: number;
  slo: Slo;
  fields: Record<string, unknown>;
  described: Record<string, unknown>;
  timeoutMs: number;
  bareRounds: number;
}

type Name = (typeof benchOptions)[number]["name"];

/** @throws {UsageError} naming the flag. */
export async function readSettings(parsed: Parsed, temperature: number): Promise<Settings> {
  const values = valuesOf(parsed, benchOptions);
  for (const row of benchOptions) checkRange(row, values[row.name]);
  const number = (name: Name, fallback: number) => {
    const value = values[name];
    return typeof value === "number" ? value : fallback;
  };
  const text = (name: Name) => String(values[name] ?? "");
  const concurrency = number("concurrency", 8);
  const rate = number("rate", Infinity);
  const rampFrom = values.rampFrom;
  if (rampFrom !== undefined && rate === Infinity) throw new UsageError("--ramp-from needs a --rate to go to.");
  const schema = text("schema") === "" ? undefined : await readJson("schema", text("schema"));
  const tools = text("tools") === "" ? undefined : await readJson("tools", text("tools"));
  if (tools !== undefined && !Array.isArray(tools)) throw new UsageError("--tools needs a file with a JSON array.");
  const fields = {
    temperature,
    ...(schema === undefined
      ? {}
      : { response_format: { type: "json_schema", json_schema: { name: "bench", schema } } }),
    ...(tools === undefined ? {} : { tools }),
    ...extraBody(text("extraBody")),
  };
  return {
    load: {
      requests: number("requests", 64),
      concurrency,
      rate,
      rampFrom: typeof rampFrom === "number" ? rampFrom : undefined,
      promptTokens: await lengths("prompt-tokens", text("promptTokens") || "128"),
      outputTokens: await lengths("output-tokens", text("outputTokens") || "64"),
      prefixShare: number("prefixShare", 0),
      cancelShare: number("cancelShare", 0),
      seed: number("benchSeed", 1),
    },
    warmUp: number("warmUp", Math.min(16, 2 * concurrency)),
    slo: parse("goodput", () => parseSlo(text("goodput"))),
    fields,
    described: { schema: text("schema") || "none", tools: text("tools") || "none" },
    timeoutMs: number("timeout", 600) * 1000,
    bareRounds: number("bareRounds", 3),
  };
}

function checkRange(row: OptionRow, value: unknown): void {
  if (typeof value !== "number") return;
  const { type, minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity } = row;
  const whole = type !== "integer" || Number.isSafeInteger(value);
  if (whole && value >= minimum && value <= maximum && value > exclusiveMinimum) return;
  throw new UsageError(`--${row.flag} must be ${rangeOf(row)}.`);
}

async function lengths(flag: string, text: string): Promise<Lengths> {
  try {
    return await parseLengths(text);
  } catch (error) {
    throw new UsageError(`--${flag}: ${messageOf(error)}.`);
  }
}

async function readJson(flag: string, path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw new UsageError(`--${flag}: ${path}: ${messageOf(error)}`);
  }
}

function extraBody(text: string): object {
  if (text === "") return {};
  const value = parse("extra-body", (): unknown => JSON.parse(text));
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new UsageError("--extra-body must be a JSON object.");
}

function parse<Value>(flag: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`--${flag}: ${messageOf(error)}`);
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
