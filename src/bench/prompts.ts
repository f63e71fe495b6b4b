import { Random } from "./random.js";

// Frequent English words: each is one token in most vocabularies, with the space before it.
const words = (
  "the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were " +
  "when we there can an your which their said if do will each about how up out them then she many some so these would " +
  "other into has more her two like him see time could no make than first been its who now people my made over did down " +
  "only way find use may water long little very after words called just where most know"
).split(" ");

/** How a text's words become a prompt's tokens, as measured at the target. */
export interface TokenRate {
  /** Tokens of a prompt besides the words: the chat template's. */
  readonly overhead: number;
  readonly perWord: number;
}

/** Words that come to about this many tokens; at least one. */
export function wordsFor(tokens: number, { overhead, perWord }: TokenRate): number {
  return Math.max(1, Math.round((tokens - overhead) / perWord));
}

/**
 * Text of `count` words. The first `shared` of them depend on `seed` alone, the rest on `seed` and `index`: prompts of one
 * load begin alike for exactly as long as asked.
 */
export function promptText(count: number, shared: number, seed: number, index: number): string {
  const common = new Random(seed).fork("prefix");
  const own = new Random(seed).fork(`own ${index}`);
  return Array.from({ length: count }, (_, i) => pick(i < shared ? common : own)).join(" ");
}

function pick(random: Random): string {
  return words[random.integer(0, words.length - 1)] ?? "the";
}

/** @param tokens of a prompt of one word and of one with `words_` more */
export function tokenRate(one: number, more: number, words_: number): TokenRate {
  const perWord = Math.max(0.1, (more - one) / words_);
  return { overhead: Math.max(0, one - perWord), perWord };
}
