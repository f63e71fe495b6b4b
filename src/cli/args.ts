import { type ParseArgsConfig, parseArgs } from "node:util";
import { type EngineOptions, rangeOf } from "../load-options.js";
import { engineOptions, type OptionRow, samplingOptions } from "../options.js";
import { didYouMean } from "../suggest.js";
import { UsageError } from "./io.js";

type Value = number | boolean | string;

/** Parsed flags by option name, and what is no flag. */
export interface Parsed {
  values: Map<string, Value>;
  positionals: string[];
}

/**
 * Parses a command's arguments; every flag comes from an option row. `--help` is understood everywhere. Where a flag is not
 * given, the environment's variable of its name holds: TOKENLOOP_CONTEXT_SIZE for --context-size.
 */
export function parseFlags(
  args: readonly string[],
  rows: readonly OptionRow[],
  environment: Readonly<NodeJS.ProcessEnv> = {},
): Parsed {
  const byFlag = new Map<string, OptionRow>();
  const options: NonNullable<ParseArgsConfig["options"]> = { help: { type: "boolean", short: "h" } };
  for (const row of rows) {
    if (row.flag === undefined) continue;
    byFlag.set(row.flag, row);
    options[row.flag] = { type: row.type === "boolean" ? "boolean" : "string" };
    if (row.type === "boolean") options[`no-${row.flag}`] = { type: "boolean" };
  }
  const { tokens, positionals } = parse(joinNegatives(args, byFlag), options);
  const values = new Map<string, Value>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const negated = byFlag.get(token.name.replace(/^no-/, ""));
    const row = byFlag.get(token.name);
    if (token.name === "help") values.set("help", true);
    else if (row !== undefined) values.set(row.name, row.type === "boolean" ? true : toValue(row, token.value ?? ""));
    else if (negated !== undefined) values.set(negated.name, false);
  }
  for (const row of byFlag.values()) {
    const text = environment[variableOf(row)];
    if (text !== undefined && text !== "" && !values.has(row.name)) values.set(row.name, fromEnvironment(row, text));
  }
  return { values, positionals };
}

const variableOf = ({ flag = "" }: OptionRow) => `TOKENLOOP_${flag.toUpperCase().replaceAll("-", "_")}`;

function fromEnvironment(row: OptionRow, text: string): Value {
  try {
    if (row.type !== "boolean") return toValue(row, text);
  } catch {
    throw new UsageError(`Invalid value '${text}' of ${variableOf(row)}: expected ${rangeOf(row)}.`);
  }
  const value = text.toLowerCase();
  if (["1", "true", "yes", "on"].includes(value)) return true;
  if (["0", "false", "no", "off"].includes(value)) return false;
  throw new UsageError(`Invalid value '${text}' of ${variableOf(row)}: expected true or false.`);
}

function parse(args: string[], options: NonNullable<ParseArgsConfig["options"]>) {
  try {
    return parseArgs({ args, options, allowPositionals: true, tokens: true });
  } catch (error) {
    const message = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    const unknown = /^Unknown option '--([^']*)'/.exec(message)?.[1];
    if (unknown === undefined) throw new UsageError(message);
    throw new UsageError(`Unknown option '--${unknown}'.${didYouMean(unknown, Object.keys(options))}`);
  }
}

/** `--gpu-layers -1` would be two flags to parseArgs. */
function joinNegatives(args: readonly string[], byFlag: ReadonlyMap<string, OptionRow>): string[] {
  const joined: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    const next = args[i + 1];
    const row = arg.startsWith("--") ? byFlag.get(arg.slice(2)) : undefined;
    if (row !== undefined && row.type !== "boolean" && next !== undefined && /^-[\d.]/.test(next)) {
      joined.push(`${arg}=${next}`);
      i++;
    } else {
      joined.push(arg);
    }
  }
  return joined;
}

function toValue(row: OptionRow, text: string): Value {
  if (row.type === "string" || (row.auto && text === "auto")) return text;
  const number = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isNaN(number))
    throw new UsageError(`Invalid value '${text}' for '--${row.flag}': expected ${rangeOf(row)}.`);
  return number;
}

/** The values that belong to the given rows. */
export function valuesOf(parsed: Parsed, rows: readonly OptionRow[]): Record<string, Value> {
  const entries: [string, Value][] = [];
  for (const { name } of rows) {
    const value = parsed.values.get(name);
    if (value !== undefined) entries.push([name, value]);
  }
  return Object.fromEntries(entries);
}

/** Engine options that were given; `Engine.load` checks their ranges. */
export function engineFlags(parsed: Parsed): EngineOptions {
  return valuesOf(parsed, engineOptions);
}

/** Sampling options that were given; the request validation checks their ranges. */
export function samplingFlags(parsed: Parsed): Partial<Record<(typeof samplingOptions)[number]["name"], number>> {
  return valuesOf(parsed, samplingOptions) as Partial<Record<(typeof samplingOptions)[number]["name"], number>>;
}

/** One line per flag, for --help. */
export function flagHelp(rows: readonly OptionRow[]): string {
  const lines = rows
    .filter(({ flag }) => flag !== undefined)
    .map((row) => {
      const flag = row.type === "boolean" ? `--${row.flag}, --no-${row.flag}` : `--${row.flag} ${kind(row)}`;
      const fallback = row.default === "" ? "" : ` (default: ${String(row.default)})`;
      return `  ${flag.padEnd(30)}${row.description}${fallback}`;
    });
  return lines.join("\n");
}

function kind(row: OptionRow): string {
  return row.type === "string" ? "TEXT" : "N";
}
