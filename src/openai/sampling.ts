import { BadRequestError } from "../errors.js";
import { dryBreakers, samplerNames } from "../options.js";
import { didYouMean } from "../suggest.js";
import { limits } from "./limits.js";
import { isObject } from "./plain.js";

/** What a request does to logits, by token id, and by texts whose tokens only the model knows. */
export interface LogitBias {
  ids: [id: number, bias: number][];
  texts: [text: string, bias: number][];
}

/**
 * OpenAI's object of token ids, or llama-server's pairs, in which a text stands for its tokens. false bans a token.
 *
 * @throws {BadRequestError} param "logit_bias".
 */
export function toLogitBias(value: unknown): LogitBias {
  const result: LogitBias = { ids: [], texts: [] };
  if (Array.isArray(value)) {
    for (const pair of value) {
      const [key, bias] = pair as [unknown, unknown];
      if (typeof key === "string" && key !== "") result.texts.push([key, toBias(bias)]);
      else if (isTokenId(key)) result.ids.push([key, toBias(bias)]);
      else throw wrongBias(`expected pairs of a token id or a text and a number, got ${JSON.stringify(key)}`);
    }
  } else if (isObject(value)) {
    for (const [key, bias] of Object.entries(value)) {
      const id = Number(key);
      if (!/^(0|[1-9]\d*)$/.test(key) || !isTokenId(id)) {
        throw new BadRequestError(
          `Invalid key in 'logit_bias': expected a token id, got '${key.slice(0, 40)}'.`,
          "logit_bias",
        );
      }
      result.ids.push([id, toBias(bias)]);
    }
  }
  return result;
}

function toBias(value: unknown): number {
  if (value === false) return -Infinity;
  if (typeof value === "number" && value >= -100 && value <= 100) return value;
  throw wrongBias(`expected a number from -100 to 100 or false, got ${JSON.stringify(value)}`);
}

function wrongBias(what: string): BadRequestError {
  return new BadRequestError(`Invalid value in 'logit_bias': ${what}.`, "logit_bias");
}

/** Whether a vocabulary may have such a token. */
export function isTokenId(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0x7fffffff;
}

const byName: ReadonlyMap<string, string> = new Map([
  ...samplerNames.map(([name]): [string, string] => [name, name]),
  ["typical_p", "typ_p"],
]);
const byLetter: ReadonlyMap<string, string> = new Map(samplerNames.map(([name, letter]) => [letter, name]));
const allSamplers = samplerNames.map(([name]) => name);

/**
 * Samplers in the order that they run in: llama.cpp's names, or its string of letters. Default: all, in its order.
 *
 * @throws {BadRequestError} param "samplers".
 */
export function toSamplers(value: unknown): readonly string[] {
  if (value === undefined) return allSamplers;
  const short = typeof value === "string";
  const known = short ? byLetter : byName;
  return [...(value as string | string[])].map((each) => {
    const name = known.get(each);
    if (name !== undefined) return name;
    const expected = short ? `letters of '${[...byLetter.keys()].join("")}'` : [...byName.keys()].join(", ");
    const hint = short ? "" : didYouMean(each, byName.keys());
    throw new BadRequestError(
      `Invalid value in 'samplers': '${each.slice(0, 40)}' is none of ${expected}.${hint}`,
      "samplers",
    );
  });
}

/** @throws {BadRequestError} param "dry_sequence_breakers": longer than llama.cpp looks at. */
export function toBreakers(value: unknown): readonly string[] {
  if (value === undefined) return dryBreakers;
  for (const breaker of value as string[]) {
    if (Buffer.byteLength(breaker) <= limits.breakerBytes) continue;
    const message = `A text in 'dry_sequence_breakers' is too long: at most ${limits.breakerBytes} bytes.`;
    throw new BadRequestError(message, "dry_sequence_breakers");
  }
  return value as string[];
}
