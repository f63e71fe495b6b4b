import { difference, digits, dot, invert, normalise, spaces, words } from "./char-sets.js";
import { largestMinimum, maximumCount } from "./counts.js";
import type { Range } from "./gbnf.js";
import { unicodeProperty } from "./unicode-property.js";

/** A regular expression as a tree. `chars` matches one code point. */
export type Pattern =
  | { kind: "chars"; ranges: readonly Range[] }
  | { kind: "seq"; items: readonly Pattern[] }
  | { kind: "alt"; items: readonly Pattern[] }
  | { kind: "repeat"; item: Pattern; min: number; max: number }
  | { kind: "start" }
  | { kind: "end" };

/** `unsupported`: a sound ECMA-262 pattern that we do not handle. */
export class PatternError extends Error {
  readonly unsupported: boolean;
  constructor(message: string, unsupported: boolean) {
    super(message);
    this.unsupported = unsupported;
  }
}

const maxDepth = 64;
const maxLength = 8192;

/** Parses ECMA-262's regular expressions (with the `u` flag, lenient about needless escapes) in linear time. */
export function parsePattern(source: string): Pattern {
  if (source.length > maxLength) throw new PatternError(`longer than ${maxLength} characters`, true);
  return new Parser([...source]).parse();
}

class Parser {
  private at = 0;
  private depth = 0;
  constructor(private readonly text: readonly string[]) {}

  parse(): Pattern {
    const out = this.alternatives();
    if (this.at < this.text.length) throw new PatternError("')' without '('", false);
    return out;
  }

  private alternatives(): Pattern {
    const items = [this.sequence()];
    while (this.take("|")) items.push(this.sequence());
    return items.length === 1 && items[0] !== undefined ? items[0] : { kind: "alt", items };
  }

  private sequence(): Pattern {
    const items: Pattern[] = [];
    for (let char = this.peek(); char !== undefined && char !== "|" && char !== ")"; char = this.peek()) {
      items.push(this.quantified());
    }
    return items.length === 1 && items[0] !== undefined ? items[0] : { kind: "seq", items };
  }

  private quantified(): Pattern {
    const item = this.atom();
    const counts = this.quantifier();
    if (counts === undefined) return item;
    if (item.kind === "start" || item.kind === "end") throw new PatternError("nothing to repeat", false);
    // Laziness changes which match is found, not whether there is one.
    this.take("?");
    if (this.quantifier() !== undefined) throw new PatternError("nothing to repeat", false);
    return { kind: "repeat", item, min: counts[0], max: counts[1] };
  }

  private quantifier(): readonly [number, number] | undefined {
    if (this.take("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.take("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.take("?")) return [0, 1];
    if (this.peek() !== "{") return undefined;
    const match = /^\{(\d+)(,(\d*))?\}/.exec(this.text.slice(this.at, this.at + 40).join(""));
    if (match === null) return undefined;
    this.at += match[0].length;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === "" ? Number.POSITIVE_INFINITY : maximumCount(match[3]);
    if (max < min) throw new PatternError("numbers out of order in {}", false);
    if (min > largestMinimum) throw new PatternError("repetition count too large", true);
    return [min, max];
  }

  private atom(): Pattern {
    const char = this.next();
    switch (char) {
      case "^":
        return { kind: "start" };
      case "$":
        return { kind: "end" };
      case ".":
        return { kind: "chars", ranges: dot };
      case "(":
        return this.group();
      case "[":
        return this.charClass();
      case "\\":
        return this.escape();
      case "*":
      case "+":
      case "?":
        throw new PatternError("nothing to repeat", false);
      default:
        return single(char);
    }
  }

  private group(): Pattern {
    if (++this.depth > maxDepth) throw new PatternError(`groups nested deeper than ${maxDepth}`, true);
    if (this.take("?")) {
      if (this.take("<")) {
        if (this.peek() === "=" || this.peek() === "!") throw new PatternError("look-behind", true);
        while (this.next() !== ">") if (this.peek() === undefined) throw new PatternError("unterminated group", false);
      } else if (!this.take(":")) {
        const look = this.peek() === "=" || this.peek() === "!";
        throw new PatternError(look ? "look-ahead" : "invalid group", look);
      }
    }
    const out = this.alternatives();
    if (!this.take(")")) throw new PatternError("unterminated group", false);
    this.depth--;
    return out;
  }

  private charClass(): Pattern {
    const negated = this.take("^");
    const ranges: Range[] = [];
    while (!this.take("]")) {
      const from = this.classItem();
      if (this.peek() === "-" && this.text[this.at + 1] !== "]" && this.text[this.at + 1] !== undefined) {
        this.at++;
        const to = this.classItem();
        if (typeof from !== "number" || typeof to !== "number") throw new PatternError("class in a range", false);
        if (to < from) throw new PatternError("range out of order in a character class", false);
        ranges.push([from, to]);
      } else if (typeof from === "number") ranges.push([from, from]);
      else ranges.push(...from);
    }
    return { kind: "chars", ranges: negated ? invert(ranges) : difference(normalise(ranges), []) };
  }

  private classItem(): number | readonly Range[] {
    const char = this.next();
    if (char !== "\\") return char.codePointAt(0) ?? 0;
    if (this.take("b")) return 8;
    const escaped = this.escape();
    if (escaped.kind !== "chars") throw new PatternError("invalid escape in a class", false);
    const [only, more] = escaped.ranges;
    return only !== undefined && more === undefined && only[0] === only[1] ? only[0] : escaped.ranges;
  }

  private escape(): Pattern {
    const char = this.next();
    switch (char) {
      case "d":
        return { kind: "chars", ranges: digits };
      case "D":
        return { kind: "chars", ranges: invert(digits) };
      case "w":
        return { kind: "chars", ranges: words };
      case "W":
        return { kind: "chars", ranges: invert(words) };
      case "s":
        return { kind: "chars", ranges: spaces };
      case "S":
        return { kind: "chars", ranges: invert(spaces) };
      case "t":
        return single("\t");
      case "n":
        return single("\n");
      case "r":
        return single("\r");
      case "v":
        return single("\v");
      case "f":
        return single("\f");
      case "0":
        if (/\d/.test(this.peek() ?? "")) throw new PatternError("octal escape", true);
        return single("\0");
      case "c": {
        const letter = this.next();
        if (!/[A-Za-z]/.test(letter)) throw new PatternError("invalid \\c escape", false);
        return single(String.fromCharCode(letter.charCodeAt(0) % 32));
      }
      case "x":
        return single(String.fromCodePoint(this.hex(2)));
      case "u":
        return single(String.fromCodePoint(this.unicode()));
      default:
        if (/[1-9k]/.test(char)) throw new PatternError("back-reference", true);
        if (/[bB]/.test(char)) throw new PatternError("word boundary", true);
        if (/[pP]/.test(char)) return this.property(char === "P");
        if (/[A-Za-z]/.test(char)) throw new PatternError(`unknown escape \\${char}`, false);
        return single(char);
    }
  }

  private property(negated: boolean): Pattern {
    if (!this.take("{")) throw new PatternError("\\p without {", false);
    let name = "";
    for (let char = this.next(); char !== "}"; char = this.next()) name += char;
    const ranges = unicodeProperty(name);
    if (ranges === undefined) throw new PatternError("unknown Unicode property", false);
    return { kind: "chars", ranges: negated ? invert(ranges) : ranges };
  }

  private unicode(): number {
    if (this.take("{")) {
      let digitsText = "";
      for (let char = this.next(); char !== "}"; char = this.next()) digitsText += char;
      const code = /^[0-9A-Fa-f]{1,8}$/.test(digitsText) ? Number.parseInt(digitsText, 16) : Number.POSITIVE_INFINITY;
      if (code > 0x10ffff) throw new PatternError("invalid \\u{} escape", false);
      return code;
    }
    const high = this.hex(4);
    if (high < 0xd800 || high > 0xdbff || this.peek() !== "\\" || this.text[this.at + 1] !== "u") return high;
    const before = this.at;
    this.at += 2;
    const low = this.hex(4);
    if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    this.at = before;
    return high;
  }

  private hex(length: number): number {
    const digitsText = this.text.slice(this.at, this.at + length).join("");
    if (!/^[0-9A-Fa-f]+$/.test(digitsText) || digitsText.length !== length) {
      throw new PatternError("invalid hexadecimal escape", false);
    }
    this.at += length;
    return Number.parseInt(digitsText, 16);
  }

  private peek(): string | undefined {
    return this.text[this.at];
  }

  private next(): string {
    const char = this.text[this.at++];
    if (char === undefined) throw new PatternError("unexpected end", false);
    return char;
  }

  private take(char: string): boolean {
    if (this.text[this.at] !== char) return false;
    this.at++;
    return true;
  }
}

function single(char: string): Pattern {
  const code = char.codePointAt(0) ?? 0;
  return { kind: "chars", ranges: [[code, code]] };
}
