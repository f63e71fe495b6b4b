import { contains, intersect, invert } from "./char-sets.js";
import { alt, chars, type Expr, optional, type Range, type Rules, repeat, rule, seq, text } from "./gbnf.js";

/** Code points that JSON strings must escape, and those that they hold as they are. */
const marked: readonly Range[] = [
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
];
const raw: readonly Range[] = invert(marked);
const hex = chars([
  [48, 57],
  [65, 70],
  [97, 102],
]);
const shortEscapes: Readonly<Record<number, string>> = { 8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\" };

/** The parts of JSON's grammar that schemas do not change. Each rule is added when first asked for. */
export class JsonRules {
  private readonly letters = new Map<string, Expr>();

  constructor(
    private readonly rules: Rules,
    private readonly space: Expr,
  ) {}

  private once(name: string, build: () => Expr): Expr {
    if (!this.rules.has(name)) {
      // Taken before it is built: JSON's rules refer to each other.
      this.rules.set(name, text("?"));
      this.rules.set(name, build());
    }
    return rule(name);
  }

  /** One code point inside a string, in any of its spellings; a surrogate pair of escapes is one. */
  char(): Expr {
    return this.once("char", () => {
      const d = chars([
        [68, 68],
        [100, 100],
      ]);
      const plain = seq(
        chars(
          invert([
            [0, 47],
            [58, 64],
            [71, 96],
            [103, 0x10ffff],
            [68, 68],
            [100, 100],
          ]),
        ),
        repeat(hex, 3, 3),
      );
      const low = seq(d, chars([[48, 55]]), repeat(hex, 2, 2));
      const pair = seq(
        d,
        chars([
          [56, 57],
          [65, 66],
          [97, 98],
        ]),
        repeat(hex, 2, 2),
        text("\\u"),
        d,
        chars([
          [67, 70],
          [99, 102],
        ]),
        repeat(hex, 2, 2),
      );
      const escapes = alt(
        chars([...'"\\/bfnrt'].map((c): Range => [c.charCodeAt(0), c.charCodeAt(0)])),
        seq(text("u"), alt(plain, low, pair)),
      );
      return alt(chars(invert(raw), true), seq(text("\\"), escapes));
    });
  }

  string(): Expr {
    return this.once("string", () => seq(text('"'), repeat(this.char(), 0, Number.POSITIVE_INFINITY), text('"')));
  }

  /**
   * One code point out of `ranges` inside a string that is under a pattern. Such strings have one spelling: characters
   * as they are, those that must be escaped by their short escape, other control characters as \u00XX.
   */
  charIn(ranges: readonly Range[]): Expr {
    const key = ranges.join(";");
    let expr = this.letters.get(key);
    if (expr === undefined) {
      expr = this.spell(ranges);
      this.letters.set(key, expr);
    }
    return expr;
  }

  private spell(ranges: readonly Range[]): Expr {
    const escapedCodes: number[] = [];
    for (let code = 0; code < 0x20; code++) escapedCodes.push(code);
    escapedCodes.push(0x22, 0x5c);
    const inside = escapedCodes.filter((code) => ranges.some(([from, to]) => from <= code && code <= to));
    const plain = intersect(ranges, raw);
    // Surrogates never come: whether they are in the set is free, and the set reads better with them.
    const split = contains(plain, 0xd7ff) && contains(plain, 0xe000);
    const rest = plain.length === 0 ? [] : invert(split ? [...plain, [0xd800, 0xdfff]] : plain);
    const direct =
      (plain.at(-1)?.[1] ?? 0) === 0x10ffff && rest.length <= plain.length + 2 ? chars(rest, true) : chars(plain);
    if (inside.length === escapedCodes.length) {
      // Everything: then the spelling is free as well.
      if (direct.kind === "chars" && direct.negated && JSON.stringify(rest) === JSON.stringify(marked))
        return this.char();
      return alt(direct, this.escape());
    }
    return alt(direct, ...inside.map((code) => text(escapeOf(code))));
  }

  private escape(): Expr {
    return this.once("escape", () => {
      const marks = Object.values(shortEscapes).map((c): Range => [c.charCodeAt(0), c.charCodeAt(0)]);
      const first = chars([
        [48, 55],
        [66, 66],
        [69, 70],
        [98, 98],
        [101, 102],
      ]);
      return seq(text("\\"), alt(chars(marks), seq(text("u00"), alt(seq(text("0"), first), seq(text("1"), hex)))));
    });
  }

  integer(): Expr {
    return this.once("integer", () => {
      const digits = repeat(chars([[48, 57]]), 0, Number.POSITIVE_INFINITY);
      return alt(text("0"), seq(optional(text("-")), chars([[49, 57]]), digits));
    });
  }

  number(): Expr {
    return this.once("number", () => {
      const digit = chars([[48, 57]]);
      const whole = alt(text("0"), seq(chars([[49, 57]]), repeat(digit, 0, Number.POSITIVE_INFINITY)));
      const fraction = seq(text("."), repeat(digit, 1, Number.POSITIVE_INFINITY));
      // Two digits: every number stays finite in the double that a reader makes of it.
      const exponent = seq(
        chars([
          [69, 69],
          [101, 101],
        ]),
        optional(
          chars([
            [43, 43],
            [45, 45],
          ]),
        ),
        repeat(digit, 1, 2),
      );
      return seq(optional(text("-")), whole, optional(fraction), optional(exponent));
    });
  }

  get comma(): Expr {
    return seq(text(","), this.space);
  }

  get colon(): Expr {
    return seq(text(":"), this.space);
  }

  /** `inner` between the brackets, with the white space that may stand beside them. */
  around(open: string, inner: Expr, close: string): Expr {
    return seq(text(open), this.space, inner, this.space, text(close));
  }

  array(): Expr {
    return this.once("array", () => this.around("[", optional(this.list(this.value())), "]"));
  }

  object(): Expr {
    return this.once("object", () =>
      this.around("{", optional(this.list(seq(this.string(), this.colon, this.value()))), "}"),
    );
  }

  private list(item: Expr): Expr {
    return seq(item, repeat(seq(this.comma, item), 0, Number.POSITIVE_INFINITY));
  }

  value(): Expr {
    return this.once("value", () =>
      alt(this.object(), this.array(), this.string(), this.number(), text("true"), text("false"), text("null")),
    );
  }
}

function escapeOf(code: number): string {
  const short = shortEscapes[code];
  return short === undefined ? `\\u${code.toString(16).padStart(4, "0")}` : `\\${short}`;
}
