/**
 * Regular expressions in RE2's syntax, as far as configurations use it: literals, classes (also `\d`, `\pL`, `[[:alpha:]]`),
 * groups, alternatives, greedy and lazy repetition, `^ $ \A \z \b \B`, and the flags i, m, s, U. No back-references and no
 * look-around: what is here can be matched in one pass.
 */
export type Node =
  | { kind: "empty" }
  | { kind: "char"; matches: (codePoint: number) => boolean }
  | { kind: "assert"; assertion: Assertion }
  | { kind: "sequence"; nodes: Node[] }
  | { kind: "choice"; nodes: Node[] }
  | { kind: "repeat"; node: Node; least: number; most: number; lazy: boolean };

export type Assertion = "textStart" | "textEnd" | "lineStart" | "lineEnd" | "wordBoundary" | "noWordBoundary";

export class RegexError extends Error {
  override readonly name = "RegexError";
  /** Where in the pattern, in UTF-16 units. */
  readonly position: number;

  constructor(message: string, position: number) {
    super(message);
    this.position = position;
  }
}

/** RE2's own limits. */
const mostRepetitions = 1000;
const mostDepth = 200;
const patternLength = 10_000;

interface Flags {
  ignoreCase: boolean;
  multiLine: boolean;
  dotAll: boolean;
  ungreedy: boolean;
}

type Test = (codePoint: number) => boolean;

/** @throws {RegexError} */
export function parseRegex(pattern: string): Node {
  if (pattern.length > patternLength) throw new RegexError(`it is longer than ${patternLength} characters`, 0);
  const parser = new Parser(pattern);
  return parser.parse();
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #flags: Flags = { ignoreCase: false, multiLine: false, dotAll: false, ungreedy: false };

  constructor(text: string) {
    this.#text = text;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#text.length) throw this.#error("')' without '('");
    return node;
  }

  #choice(): Node {
    if (++this.#depth > mostDepth) throw this.#error(`groups are nested deeper than ${mostDepth}`);
    const nodes = [this.#sequence()];
    while (this.#take("|")) nodes.push(this.#sequence());
    this.#depth--;
    return nodes.length === 1 ? (nodes[0] as Node) : { kind: "choice", nodes };
  }

  #sequence(): Node {
    const nodes: Node[] = [];
    while (this.#at < this.#text.length && !this.#sees("|") && !this.#sees(")")) nodes.push(this.#repeated());
    if (nodes.length === 1) return nodes[0] as Node;
    return nodes.length === 0 ? { kind: "empty" } : { kind: "sequence", nodes };
  }

  #repeated(): Node {
    const start = this.#at;
    let node = this.#atom();
    for (let count = 0; ; count++) {
      const range = this.#repetition();
      if (range === undefined) return node;
      if (count > 0) throw new RegexError("a repetition of a repetition needs a group", start);
      const lazy = this.#take("?") !== this.#flags.ungreedy;
      node = { kind: "repeat", node, ...range, lazy };
    }
  }

  #repetition(): { least: number; most: number } | undefined {
    if (this.#take("*")) return { least: 0, most: Infinity };
    if (this.#take("+")) return { least: 1, most: Infinity };
    if (this.#take("?")) return { least: 0, most: 1 };
    const counted = /^\{(\d{1,9})(,(\d{0,9}))?\}/.exec(this.#text.slice(this.#at, this.#at + 24));
    if (counted === null) return undefined;
    const least = Number(counted[1]);
    const most = counted[2] === undefined ? least : counted[3] === "" ? Infinity : Number(counted[3]);
    if (least > mostRepetitions || (most !== Infinity && most > mostRepetitions) || most < least) {
      throw this.#error(`a repetition from ${least} to ${most} is not possible (at most ${mostRepetitions})`);
    }
    this.#at += counted[0].length;
    return { least, most };
  }

  #atom(): Node {
    const start = this.#at;
    const char = this.#next();
    switch (char) {
      case "(":
        return this.#group();
      case "[":
        return this.#char(this.#class());
      case ".":
        return this.#flags.dotAll ? this.#char(() => true, false) : this.#char((code) => code !== 10, false);
      case "^":
        return { kind: "assert", assertion: this.#flags.multiLine ? "lineStart" : "textStart" };
      case "$":
        return { kind: "assert", assertion: this.#flags.multiLine ? "lineEnd" : "textEnd" };
      case "*":
      case "+":
      case "?":
        throw new RegexError(`'${char}' repeats nothing`, start);
      case "\\":
        return this.#escape();
      default:
        return this.#literal(char);
    }
  }

  #group(): Node {
    const outer = { ...this.#flags };
    if (this.#take("?")) {
      const named = /^(?:P?<[A-Za-z_]\w*>)/.exec(this.#text.slice(this.#at, this.#at + 100));
      if (named !== null) {
        this.#at += named[0].length;
      } else if (this.#setFlags()) {
        // `(?i)` holds up to the end of the group around it.
        return { kind: "empty" };
      }
    }
    const node = this.#choice();
    if (!this.#take(")")) throw this.#error("')' is missing");
    this.#flags = outer;
    return node;
  }

  /** True for `(?i)`, false for the beginning of a group `(?i:`. */
  #setFlags(): boolean {
    let on = true;
    for (;;) {
      const char = this.#next();
      if (char === ":") return false;
      if (char === ")") return true;
      if (char === "-" && on) on = false;
      else if (char === "i") this.#flags.ignoreCase = on;
      else if (char === "m") this.#flags.multiLine = on;
      else if (char === "s") this.#flags.dotAll = on;
      else if (char === "U") this.#flags.ungreedy = on;
      else throw this.#error("look-around and other groups with '(?' are not supported");
    }
  }

  #escape(): Node {
    const char = this.#peek();
    const assertions: Record<string, Assertion> = {
      A: "textStart",
      z: "textEnd",
      b: "wordBoundary",
      B: "noWordBoundary",
    };
    const assertion = assertions[char];
    if (assertion !== undefined) {
      this.#next();
      return { kind: "assert", assertion };
    }
    if (char === "Q") {
      this.#next();
      const end = this.#text.indexOf("\\E", this.#at);
      const literal = this.#text.slice(this.#at, end < 0 ? undefined : end);
      this.#at = end < 0 ? this.#text.length : end + 2;
      return { kind: "sequence", nodes: Array.from(literal, (each) => this.#literal(each)) };
    }
    const set = this.#classEscape();
    return this.#char(set);
  }

  /** What follows a backslash, inside a class or outside: a set or a single character. */
  #classEscape(): Test {
    const start = this.#at - 1;
    const char = this.#next();
    const classes: Record<string, Test> = { d: isDigit, w: isWord, s: isSpace };
    const known = classes[char.toLowerCase()];
    if (known !== undefined) return char === char.toLowerCase() ? known : not(known);
    if (char === "p" || char === "P") return this.#property(char === "P", start);
    const controls: Record<string, number> = { t: 9, n: 10, v: 11, f: 12, r: 13, a: 7 };
    const control = controls[char];
    if (control !== undefined) return (code) => code === control;
    if (char === "x") {
      const hex = /^(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})/.exec(this.#text.slice(this.#at, this.#at + 8));
      const value = hex === null ? Infinity : Number.parseInt(hex[1] ?? hex[2] ?? "", 16);
      if (hex === null || value > 0x10ffff) throw new RegexError("'\\x' needs two hexadecimal digits, or {…}", start);
      this.#at += hex[0].length;
      return (code) => code === value;
    }
    if (/^[0-9A-Za-z]$/.test(char)) throw new RegexError(`'\\${char}' is not supported`, start);
    const literal = char.codePointAt(0);
    return (code) => code === literal;
  }

  #property(negated: boolean, start: number): Test {
    const name = /^(?:([A-Z])|\{(\^?)([A-Za-z_]+)\})/.exec(this.#text.slice(this.#at, this.#at + 60));
    if (name === null) throw new RegexError("'\\p' needs the name of a class", start);
    this.#at += name[0].length;
    const property = name[1] ?? name[3] ?? "";
    const expression = propertyTest(property);
    if (expression === undefined) throw new RegexError(`'${property}' is no class of characters`, start);
    return negated !== (name[2] === "^") ? not(expression) : expression;
  }

  #class(): Test {
    const start = this.#at - 1;
    const negated = this.#take("^");
    const tests: Test[] = [];
    for (let first = true; first || !this.#sees("]"); first = false) {
      if (this.#at >= this.#text.length) throw new RegexError("']' is missing", start);
      const named = /^\[:(\^?)([a-z]+):\]/.exec(this.#text.slice(this.#at, this.#at + 20));
      if (named !== null) {
        const test = posix[named[2] ?? ""];
        if (test === undefined) throw this.#error(`[:${named[2]}:] is no class of characters`);
        this.#at += named[0].length;
        tests.push(named[1] === "^" ? not(test) : test);
        continue;
      }
      tests.push(this.#classItem());
    }
    this.#next();
    const any = (code: number) => tests.some((test) => test(code));
    const folded = this.#flags.ignoreCase ? foldCase(any) : any;
    return negated ? not(folded) : folded;
  }

  #classItem(): Test {
    const start = this.#at;
    const low = this.#classEnd();
    const isRange = this.#sees("-") && this.#text[this.#at + 1] !== "]" && this.#at + 1 < this.#text.length;
    if (!isRange) return typeof low === "number" ? (code) => code === low : low;
    this.#next();
    const high = this.#classEnd();
    if (typeof low !== "number" || typeof high !== "number" || high < low) {
      throw new RegexError("the range is empty", start);
    }
    return (code) => code >= low && code <= high;
  }

  #classEnd(): number | Test {
    const char = this.#next();
    if (char !== "\\") return char.codePointAt(0) ?? 0;
    const before = this.#at;
    const test = this.#classEscape();
    const written = this.#text.slice(before, this.#at);
    if (/^[dwspPDWS]/.test(written)) return test;
    const simple: Record<string, number> = { t: 9, n: 10, v: 11, f: 12, r: 13, a: 7 };
    if (written[0] === "x") return Number.parseInt(written.replace(/[x{}]/g, ""), 16);
    return simple[written] ?? written.codePointAt(0) ?? 0;
  }

  #literal(char: string): Node {
    const code = char.codePointAt(0);
    return this.#char((other) => other === code);
  }

  #char(matches: Test, foldable = true): Node {
    return { kind: "char", matches: foldable && this.#flags.ignoreCase ? foldCase(matches) : matches };
  }

  #peek(): string {
    const code = this.#text.codePointAt(this.#at);
    return code === undefined ? "" : String.fromCodePoint(code);
  }

  #next(): string {
    const char = this.#peek();
    if (char === "") throw this.#error("it ends too early");
    this.#at += char.length;
    return char;
  }

  #sees(char: string): boolean {
    return this.#text[this.#at] === char;
  }

  #take(char: string): boolean {
    if (!this.#sees(char)) return false;
    this.#at++;
    return true;
  }

  #error(message: string): RegexError {
    return new RegexError(message, this.#at);
  }
}

const not =
  (test: Test): Test =>
  (code) =>
    !test(code);
const isDigit: Test = (code) => code >= 48 && code <= 57;
const isLower: Test = (code) => code >= 97 && code <= 122;
const isUpper: Test = (code) => code >= 65 && code <= 90;
const isAlpha: Test = (code) => isLower(code) || isUpper(code);
export const isWord: Test = (code) => isAlpha(code) || isDigit(code) || code === 95;
/** RE2's: without the vertical tab. */
const isSpace: Test = (code) => code === 32 || (code >= 9 && code <= 13 && code !== 11);
const isPunctuation: Test = (code) => code > 32 && code < 127 && !isAlpha(code) && !isDigit(code);

const posix: Readonly<Record<string, Test>> = {
  alnum: (code) => isAlpha(code) || isDigit(code),
  alpha: isAlpha,
  ascii: (code) => code < 128,
  blank: (code) => code === 9 || code === 32,
  cntrl: (code) => code < 32 || code === 127,
  digit: isDigit,
  graph: (code) => code > 32 && code < 127,
  lower: isLower,
  print: (code) => code >= 32 && code < 127,
  punct: isPunctuation,
  space: (code) => code === 32 || (code >= 9 && code <= 13),
  upper: isUpper,
  word: isWord,
  xdigit: (code) => isDigit(code) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102),
};

/** General categories and scripts. JavaScript knows them; one character at a time is no search. */
function propertyTest(name: string): Test | undefined {
  for (const property of [name, `Script=${name}`]) {
    try {
      const expression = new RegExp(`^\\p{${property}}$`, "u");
      return (code) => expression.test(String.fromCodePoint(code));
    } catch {
      // Not one of these; perhaps of the next.
    }
  }
  return undefined;
}

/** Simple case folding, of characters that have one counterpart. */
function foldCase(test: Test): Test {
  return (code) => {
    if (test(code)) return true;
    const char = String.fromCodePoint(code);
    return [char.toLowerCase(), char.toUpperCase()].some((other) => {
      const otherCode = other.codePointAt(0) ?? 0;
      return other.length === String.fromCodePoint(otherCode).length && test(otherCode);
    });
  };
}
