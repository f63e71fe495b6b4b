/** A plain parser for GBNF: the tests' own reading of the dialect, apart from what writes it. */
export type Gbnf =
  | { kind: "chars"; id: number; ranges: [number, number][]; negated: boolean }
  | { kind: "seq"; id: number; items: Gbnf[] }
  | { kind: "alt"; id: number; items: Gbnf[] }
  | { kind: "repeat"; id: number; item: Gbnf; min: number; max: number }
  | { kind: "rule"; id: number; name: string };

export interface Grammar {
  rules: Map<string, Gbnf>;
}

export function parseGbnf(source: string): Grammar {
  return new Reader([...source]).grammar();
}

const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  "\\": "\\",
  '"': '"',
  "[": "[",
  "]": "]",
};

class Reader {
  private at = 0;
  private ids = 0;
  constructor(private readonly text: string[]) {}

  grammar(): Grammar {
    const rules = new Map<string, Gbnf>();
    for (this.space(); this.at < this.text.length; this.space()) {
      const name = this.name();
      this.space();
      for (const char of "::=") this.expect(char);
      if (rules.has(name)) throw new Error(`Rule ${name} is there twice.`);
      rules.set(name, this.alternatives());
    }
    for (const name of this.used) if (!rules.has(name)) throw new Error(`Rule ${name} is missing.`);
    if (!rules.has("root")) throw new Error("No rule root.");
    return { rules };
  }

  private readonly used = new Set<string>();

  private alternatives(): Gbnf {
    const items = [this.sequence()];
    for (this.space(); this.text[this.at] === "|"; this.space()) {
      this.at++;
      items.push(this.sequence());
    }
    return items.length === 1 && items[0] ? items[0] : { kind: "alt", id: this.ids++, items };
  }

  private sequence(): Gbnf {
    const items: Gbnf[] = [];
    for (;;) {
      this.space();
      const char = this.text[this.at];
      if (char === undefined || char === "|" || char === ")" || this.atRule()) break;
      items.push(this.repeated(this.item(char)));
    }
    if (items.length === 0) throw this.error("an empty alternative");
    return items.length === 1 && items[0] ? items[0] : { kind: "seq", id: this.ids++, items };
  }

  private repeated(item: Gbnf): Gbnf {
    const char = this.text[this.at];
    if (char === "*" || char === "+" || char === "?") {
      this.at++;
      const [min, max] = char === "*" ? [0, Infinity] : char === "+" ? [1, Infinity] : [0, 1];
      return this.single({ kind: "repeat", id: this.ids++, item, min, max });
    }
    if (char !== "{") return item;
    const match = /^\{(\d+)(?:(,)(\d*))?\}/.exec(this.text.slice(this.at, this.at + 30).join(""));
    if (!match) throw this.error("a malformed repetition");
    this.at += match[0].length;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === "" ? Infinity : Number(match[3]);
    if (max < min) throw this.error("a repetition with max < min");
    return this.single({ kind: "repeat", id: this.ids++, item, min, max });
  }

  private single(item: Gbnf): Gbnf {
    if (/[*+?{]/.test(this.text[this.at] ?? "")) throw this.error("two repetitions in a row");
    return item;
  }

  private item(char: string): Gbnf {
    if (char === '"') return this.literal();
    if (char === "[") return this.charClass();
    if (char === "(") {
      this.at++;
      const inner = this.alternatives();
      this.expect(")");
      return inner;
    }
    const name = this.name();
    this.used.add(name);
    return { kind: "rule", id: this.ids++, name };
  }

  private literal(): Gbnf {
    this.expect('"');
    const items: Gbnf[] = [];
    while (this.text[this.at] !== '"') {
      const code = this.char();
      items.push({ kind: "chars", id: this.ids++, ranges: [[code, code]], negated: false });
    }
    this.at++;
    return items.length === 1 && items[0] ? items[0] : { kind: "seq", id: this.ids++, items };
  }

  private charClass(): Gbnf {
    this.expect("[");
    const negated = this.text[this.at] === "^";
    if (negated) this.at++;
    const ranges: [number, number][] = [];
    while (this.text[this.at] !== "]") {
      const from = this.char();
      if (this.text[this.at] === "-" && this.text[this.at + 1] !== "]") {
        this.at++;
        const to = this.char();
        if (to < from) throw this.error("a range out of order");
        ranges.push([from, to]);
      } else ranges.push([from, from]);
    }
    this.at++;
    if (ranges.length === 0 && !negated) throw this.error("an empty class");
    return { kind: "chars", id: this.ids++, ranges, negated };
  }

  private char(): number {
    const char = this.text[this.at++];
    if (char === undefined || char === "\n") throw this.error("an unfinished literal");
    if (char !== "\\") return char.codePointAt(0) ?? 0;
    const letter = this.text[this.at++] ?? "";
    const length = { x: 2, u: 4, U: 8 }[letter];
    if (length !== undefined) {
      const digits = this.text.slice(this.at, this.at + length).join("");
      if (!/^[0-9A-Fa-f]+$/.test(digits) || digits.length !== length) throw this.error("a malformed escape");
      this.at += length;
      return Number.parseInt(digits, 16);
    }
    const plain = escapes[letter];
    if (plain === undefined) throw this.error(`the unknown escape \\${letter}`);
    return plain.codePointAt(0) ?? 0;
  }

  /** Whether a new rule begins here. */
  private atRule(): boolean {
    return /^[A-Za-z0-9-]+ *::=/.test(this.text.slice(this.at, this.at + 80).join(""));
  }

  private name(): string {
    const match = /^[A-Za-z0-9-]+/.exec(this.text.slice(this.at, this.at + 80).join(""));
    if (!match) throw this.error("a name is missing");
    this.at += match[0].length;
    return match[0];
  }

  private space(): void {
    while (/^\s$/.test(this.text[this.at] ?? "")) this.at++;
  }

  private expect(char: string): void {
    if (this.text[this.at] !== char) throw this.error(`'${char}' is missing`);
    this.at++;
  }

  private error(what: string): Error {
    return new Error(`Bad grammar: ${what} at ${this.at}: ${this.text.slice(this.at - 20, this.at + 20).join("")}`);
  }
}
