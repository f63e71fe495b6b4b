import { readFile } from "node:fs/promises";
import type { Random } from "./random.js";

/** How many tokens: always the same, between two numbers, or one after the other from a list, from its start again. */
export type Lengths =
  | { readonly kind: "fixed"; readonly value: number }
  | { readonly kind: "uniform"; readonly from: number; readonly to: number }
  | { readonly kind: "list"; readonly values: readonly number[]; readonly source: string };

const most = 1_000_000;

/**
 * `256`, `64..512`, or `@FILE`: a text file with one number a line.
 *
 * @throws {RangeError} the text is none of these, or a number is not an integer from 1 to 1,000,000.
 */
export async function parseLengths(text: string): Promise<Lengths> {
  if (text.startsWith("@")) {
    const source = text.slice(1);
    const lines = (await readFile(source, "utf8")).split("\n").map((line) => line.trim());
    const values = lines.flatMap((line, i) => (line === "" ? [] : [length(line, `${source}:${i + 1}: `)]));
    if (values.length === 0) throw new RangeError(`${source}: no numbers`);
    return { kind: "list", values, source };
  }
  const [from = "", to, ...rest] = text.split("..");
  if (rest.length > 0) throw new RangeError(`'${text}' is neither N, N..M nor @FILE`);
  if (to === undefined) return { kind: "fixed", value: length(from, "") };
  const range = { kind: "uniform" as const, from: length(from, ""), to: length(to, "") };
  if (range.from > range.to) throw new RangeError(`${text}: the smaller number comes first`);
  return range;
}

function length(text: string, where: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= most) return value;
  throw new RangeError(`${where}'${text}' is not an integer from 1 to ${most}`);
}

/** Of request `index`. */
export function drawLength(lengths: Lengths, index: number, random: Random): number {
  if (lengths.kind === "fixed") return lengths.value;
  if (lengths.kind === "uniform") return random.integer(lengths.from, lengths.to);
  return lengths.values[index % lengths.values.length] ?? 1;
}

/** As it was given. */
export function lengthsText(lengths: Lengths): string {
  if (lengths.kind === "fixed") return String(lengths.value);
  return lengths.kind === "uniform" ? `${lengths.from}..${lengths.to}` : `@${lengths.source}`;
}

/** The longest that can come. */
export function longest(lengths: Lengths): number {
  if (lengths.kind === "list") return lengths.values.reduce((most_, value) => Math.max(most_, value), 0);
  return lengths.kind === "fixed" ? lengths.value : lengths.to;
}
