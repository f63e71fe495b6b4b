import { compileRegex, type Program } from "../regex/program.js";
import { RegexScanner } from "../regex/scanner.js";

/** What is done to an answer's text, in this order; LocalAI's names and meaning. */
export interface PostprocessOptions {
  /** Regular expressions whose matches are deleted. */
  cutStrings: readonly string[];
  /** The first match of each, one after another, takes the place of the text; where none matches, the text stays. */
  extractRegex: readonly string[];
  /** For each: it is taken off the beginning, once, and then all white space off both ends. */
  trimSpace: readonly string[];
  /** For each: it is taken off the end, once, and then all white space off both ends. */
  trimSuffix: readonly string[];
}

/** Makes one answer's text into another, in pieces: what push() and finish() return, put together. */
export interface TextStage {
  push(text: string): string;
  finish(): string;
}

/**
 * Compiles the options; the result makes a stage for each answer. Put together, its output is the same for every way of
 * cutting the text into pieces, and it holds text back only while what happens to it is open.
 *
 * @throws {RegexError} of an expression.
 */
export function compilePostprocess(options: PostprocessOptions): (() => TextStage) | undefined {
  const cuts = options.cutStrings.map(compileRegex);
  const extracts = options.extractRegex.map(compileRegex);
  const makers: (() => TextStage)[] = [
    ...cuts.map((program) => () => new CutStage(program)),
    ...(extracts.length > 0 ? [() => new ExtractStage(extracts)] : []),
    ...options.trimSpace.flatMap((prefix) => [() => new PrefixStage(prefix), () => new SuffixStage("")]),
    ...options.trimSuffix.map((suffix) => () => new SuffixStage(suffix)),
  ];
  if (makers.length === 0) return undefined;
  return () => new Pipeline(makers.map((make) => make()));
}

class Pipeline implements TextStage {
  readonly #stages: readonly TextStage[];

  constructor(stages: readonly TextStage[]) {
    this.#stages = stages;
  }

  push(text: string): string {
    return this.#stages.reduce((piece, stage) => (piece === "" ? "" : stage.push(piece)), text);
  }

  finish(): string {
    let rest = "";
    for (const stage of this.#stages) rest = (rest === "" ? "" : stage.push(rest)) + stage.finish();
    return rest;
  }
}

/** Deletes all matches. */
class CutStage implements TextStage {
  #out = "";
  readonly #scanner: RegexScanner;

  constructor(program: Program) {
    this.#scanner = new RegexScanner(program, {
      text: (text) => {
        this.#out += text;
      },
      match: () => false,
    });
  }

  push(text: string): string {
    this.#scanner.push(text);
    return this.#take();
  }

  finish(): string {
    this.#scanner.finish();
    return this.#take();
  }

  #take(): string {
    const out = this.#out;
    this.#out = "";
    return out;
  }
}

/** Takes out the first match of each expression. */
class ExtractStage implements TextStage {
  readonly #scanners: RegexScanner[];
  /** Of each expression: undefined while it is open. */
  readonly #matches: (string | undefined)[];
  /** Expressions whose match is out. */
  #sent = 0;
  /** The whole text, kept as long as nothing matched. */
  #whole = "";
  #any = false;

  constructor(programs: readonly Program[]) {
    this.#matches = programs.map(() => undefined);
    this.#scanners = programs.map(
      (program, i) =>
        new RegexScanner(program, {
          text: () => undefined,
          match: (text) => {
            this.#matches[i] = text;
            return true;
          },
          // An empty match is the first one, too, and is nothing.
          empty: () => {
            this.#matches[i] = "";
            return true;
          },
        }),
    );
  }

  push(text: string): string {
    if (!this.#any) this.#whole += text;
    for (const scanner of this.#scanners) scanner.push(text);
    return this.#take();
  }

  finish(): string {
    for (const scanner of this.#scanners) scanner.finish();
    for (let i = 0; i < this.#matches.length; i++) this.#matches[i] ??= "";
    const out = this.#take();
    return this.#any ? out : this.#whole;
  }

  #take(): string {
    let out = "";
    for (let match = this.#matches[this.#sent]; match !== undefined; match = this.#matches[++this.#sent]) out += match;
    if (out !== "") {
      this.#any = true;
      this.#whole = "";
    }
    return out;
  }
}

/** Takes a prefix off. */
class PrefixStage implements TextStage {
  readonly #prefix: string;
  /** Up to where it is known whether the text begins with the prefix; undefined from then on. */
  #held: string | undefined = "";

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  push(text: string): string {
    if (this.#held === undefined) return text;
    const held = this.#held + text;
    if (held.length < this.#prefix.length && this.#prefix.startsWith(held)) {
      this.#held = held;
      return "";
    }
    this.#held = undefined;
    return held.startsWith(this.#prefix) ? held.slice(this.#prefix.length) : held;
  }

  finish(): string {
    const held = this.#held ?? "";
    this.#held = undefined;
    return held === this.#prefix ? "" : held;
  }
}

/** Takes a suffix off, and then white space off both ends. */
class SuffixStage implements TextStage {
  readonly #suffix: string;
  /** What may still be cut: the suffix, and white space before it; at the beginning white space after nothing. */
  #held = "";
  #begun = false;

  constructor(suffix: string) {
    this.#suffix = suffix;
  }

  push(text: string): string {
    const held = this.#held + text;
    // The suffix may begin here, and the white space before it would go as well.
    let begun = Math.min(this.#suffix.length, held.length);
    while (!held.endsWith(this.#suffix.slice(0, begun))) begun--;
    const end = trimEnd(held, held.length - begun);
    const start = this.#begun ? 0 : trimStart(held, end);
    if (start >= end) {
      this.#held = held;
      return "";
    }
    this.#begun = true;
    this.#held = held.slice(end);
    return held.slice(start, end);
  }

  finish(): string {
    const held = this.#held.endsWith(this.#suffix)
      ? this.#held.slice(0, this.#held.length - this.#suffix.length)
      : this.#held;
    this.#held = "";
    const end = trimEnd(held, held.length);
    return held.slice(this.#begun ? 0 : trimStart(held, end), end);
  }
}

/** Unicode's white space. Not String.prototype.trim's, which differs in two characters from what LocalAI trims. */
const whiteSpace = /[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

function trimEnd(text: string, end: number): number {
  let at = end;
  while (at > 0 && whiteSpace.test(text.charAt(at - 1))) at--;
  return at;
}

function trimStart(text: string, end: number): number {
  let at = 0;
  while (at < end && whiteSpace.test(text.charAt(at))) at++;
  return at;
}
