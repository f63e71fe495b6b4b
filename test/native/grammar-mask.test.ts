import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { Random } from "../models/random.js";
import { grammar, ids, qwen3Pieces, vocabulary } from "../support/grammar.js";
import type { GrammarMasker, GrammarState, GrammarVocabulary } from "../support/test-addon.js";

class Draw extends Random {
  below(bound: number): number {
    return this.uint32() % bound;
  }
  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }
}

const atoms = [
  '"a"',
  '"b"',
  '"ab"',
  '"é"',
  '"😀"',
  "[a-c]",
  "[^a]",
  "[^ab\\u00e8-\\u00f0]",
  "[é-ü]",
  ".",
  '""',
  "<[3]>",
  "!<[5]>",
];
const signs = ["", "", "", "*", "+", "?", "{2}", "{0,3}", "{2,}", "{1,4}", "{3,40}"];

/** Rules r0 to r3; each may call those behind it anywhere, itself and those before it only after a byte. */
function randomGrammar(draw: Draw): string {
  const rules = ["root", "ra", "rb", "rc"];
  const expression = (rule: number, depth: number): string =>
    Array.from({ length: 1 + draw.below(3) }, () =>
      Array.from({ length: draw.below(4) }, () => item(rule, depth)).join(" "),
    ).join(" | ");
  const item = (rule: number, depth: number): string => {
    const kind = draw.below(10);
    if (kind < 2 && depth > 0) return `(${expression(rule, depth - 1)})${draw.pick(signs)}`;
    if (kind < 4 && rule + 1 < rules.length) {
      return rules[rule + 1 + draw.below(rules.length - rule - 1)] + draw.pick(signs);
    }
    if (kind === 4) return `"c" ${draw.pick(rules)}`;
    return draw.pick(atoms) + draw.pick(signs);
  };
  return rules.map((name, rule) => `${name} ::= (${expression(rule, 2)})`).join("\n");
}

/** Tokens of up to eight bytes: characters whole and cut, single bytes, ill-formed bytes, control tokens without text. */
function randomPieces(draw: Draw): Buffer[] {
  const parts = ["a", "b", "c", "d", "é", "ü", "è", "😀", "\n"].map((text) => Buffer.from(text));
  parts.push(Buffer.from([0xc3]), Buffer.from([0xa9]), Buffer.from([0xf0, 0x9f]), Buffer.from([0x98, 0x80]));
  parts.push(Buffer.from([0xff]), Buffer.from([0xed, 0xa0]));
  return Array.from({ length: 20 + draw.below(150) }, () =>
    Buffer.concat(Array.from({ length: draw.below(5) }, () => draw.pick(parts))),
  );
}

/**
 * The mask, when it is what the matcher says token by token. It may also hold a token that makes the state too ambiguous
 * to follow: such a state says so.
 */
function expectSame(masker: GrammarMasker, state: GrammarState, message: string, pieces?: Buffer[]): number[] {
  const mask = ids(masker.mask(state));
  const overflows = (id: number) => {
    const next = state.clone();
    return !next.acceptToken(id, pieces?.[id] as Buffer) && next.overflowed();
  };
  const known = new Set(ids(masker.bruteForce(state)));
  expect(
    mask.filter((id) => known.has(id) || !pieces || !overflows(id)),
    message,
  ).toEqual([...known]);
  expect(ids(masker.mask(state)), `${message}, from the cache`).toEqual(mask);
  return mask;
}

/** A mask that could be made. */
function whole(mask: Uint8Array | null): Uint8Array {
  if (mask === null) throw new Error("the grammar is too ambiguous for a mask");
  return mask;
}

describe("masks", () => {
  it("hold the tokens that the matcher takes, and no others", () => {
    let compared = 0;
    let overflowed = 0;
    let tokens = 0;
    for (let seed = 0; seed < 400; ++seed) {
      const draw = new Draw(seed);
      const text = randomGrammar(draw);
      const parsed = grammar(text);
      const pieces = randomPieces(draw);
      const masker = parsed.masker(vocabulary(pieces));
      const state = parsed.start();
      for (let step = 0; step < 12; ++step) {
        if (state.overflowed()) break;
        const allowed = expectSame(masker, state, `seed ${seed}, step ${step}\n${text}`, pieces);
        ++compared;
        tokens += allowed.length;
        if (allowed.length === 0) break;
        const token = draw.pick(allowed);
        expect(state.acceptToken(token, pieces[token] as Buffer) || state.overflowed()).toBe(true);
        if (state.overflowed()) ++overflowed;
      }
    }
    expect(overflowed).toBeLessThan(40);
    expect(compared).toBeGreaterThan(1000);
    expect(tokens).toBeGreaterThan(10_000);
  });

  it("let a token cross the ends of rules, and cut characters", () => {
    const pieces = ["{", '{"a', '{"a":', '":[1', "]}", '{"b', "é"].map((text) => Buffer.from(text));
    pieces.push(Buffer.from([0x22, 0x3a, 0x22, 0xc3]), Buffer.from([0xa9, 0x22, 0x7d]), Buffer.from([0xa9]));
    const parsed = grammar(
      `root ::= "{" pair "}"
      `
        .trim()
        .concat(`
pair ::= key ":" value
key ::= "\\"a\\""
value ::= "[" [0-9]+ "]" | "\\"" [^"]* "\\""`),
    );
    const masker = parsed.masker(vocabulary(pieces));
    const state = parsed.start();
    expect(expectSame(masker, state, "start")).toEqual([0, 1, 2]);
    expect(state.acceptToken(1, pieces[1] as Buffer)).toBe(true);
    expect(expectSame(masker, state, "key")).toEqual([3, 7]);
    const array = state.clone();
    expect(array.acceptToken(3, pieces[3] as Buffer)).toBe(true);
    expect(expectSame(masker, array, "array")).toEqual([4]);
    expect(array.acceptToken(4, pieces[4] as Buffer)).toBe(true);
    expect(array.canEnd()).toBe(true);
    expect(expectSame(masker, array, "end")).toEqual([]);
    expect(state.acceptToken(7, pieces[7] as Buffer)).toBe(true);
    expect(expectSame(masker, state, "within a character")).toEqual([8, 9]);
  });

  it("never take a token without text for text", () => {
    const pieces = [Buffer.alloc(0), Buffer.from("a"), Buffer.alloc(0)];
    const open = grammar("root ::= .*");
    expect(ids(open.masker(vocabulary(pieces)).mask(open.start()))).toEqual([1]);
    const named = grammar("root ::= .* <[2]>");
    expect(ids(named.masker(vocabulary(pieces)).mask(named.start()))).toEqual([1, 2]);
  });

  it("are the same for equal states, and those are found equal", () => {
    const parsed = grammar('root ::= "[" item ("," item)* "]"\nitem ::= [0-9]+');
    const one = parsed.start();
    const other = parsed.start();
    one.acceptBytes(Buffer.from("[1"));
    other.acceptBytes(Buffer.from("[12,345"));
    expect(one.equals(other)).toBe(true);
    expect(one.hash()).toBe(other.hash());
    other.acceptBytes(Buffer.from(","));
    expect(one.equals(other)).toBe(false);
  });

  it("count to the end of a bounded string", () => {
    const pieces = ["a", "aa", "aaa", "aaaaaaaa", "é", "éé", '"', 'a"', 'aaaa"', '""'].map((text) => Buffer.from(text));
    const parsed = grammar('root ::= "\\"" [^"]{2,300} "\\""');
    const masker = parsed.masker(vocabulary(pieces));
    const state = parsed.start();
    state.acceptBytes(Buffer.from('"'));
    for (let length = 0; length <= 300; ++length) {
      expectSame(masker, state, `after ${length}`);
      expect(state.acceptBytes(Buffer.from("é"))).toBe(length < 300);
    }
  });

  it("stay right when the caches overflow", () => {
    const pieces = Array.from({ length: 300 }, (_, i) => Buffer.from(`${i}`));
    const parsed = grammar('root ::= ([0-9]{1,400} ","){1,400}');
    const masker = parsed.masker(vocabulary(pieces));
    const state = parsed.start();
    for (let step = 0; step < 800; ++step) {
      state.acceptBytes(Buffer.from(step % 7 === 6 ? "," : "1"));
      if (step % 10 === 0) expectSame(masker, state, `step ${step}`);
      else masker.mask(state);
    }
    expect(masker.bytes()).toBeLessThan(48 << 20);
  });
});

describe("masks over Qwen3's vocabulary", () => {
  let pieces: Buffer[];
  let qwen3: GrammarVocabulary;
  beforeAll(() => {
    pieces = qwen3Pieces();
    qwen3 = vocabulary(pieces);
  });

  const llama = join("node_modules", "@novastera-oss", "llamarn", "cpp", "llama.cpp", "grammars", "json.gbnf");
  const grammars: [name: string, text: () => string, example: string][] = [
    ["json.gbnf", () => readFileSync(llama, "utf8"), '{"a é":[1,-2.5e3,{"b":null,"c":"😀\\n日本"}],"x":"a b c"}'],
    [
      "bounded strings and arrays",
      () => `root ::= "{\\"name\\":" text ",\\"tags\\":[" (text ("," text){0,9})? "]}"
text ::= "\\"" ([^"\\\\\\x00-\\x1F] | "\\\\" ["\\\\/bfnrt]){0,40} "\\""`,
      '{"name":"Zoë (née X) says","tags":["one","😀 two"]}',
    ],
  ];

  it.each(grammars)("%s: the same as token by token", (_, text, example) => {
    const parsed = grammar(text());
    const masker = parsed.masker(qwen3);
    const state = parsed.start();
    const bytes = Buffer.from(example);
    const step = Math.ceil(bytes.length / 32);
    for (let at = 0; at < bytes.length; ++at) {
      if (at % step === 0) {
        const mask = whole(masker.mask(state));
        expect(Buffer.compare(mask, masker.bruteForce(state)), `before ${bytes.subarray(at)}`).toBe(0);
        expect(ids(mask).length).toBeGreaterThan(0);
      }
      expect(state.accept(bytes[at] as number)).toBe(true);
    }
    expect(state.canEnd()).toBe(true);
  });

  const character = String.raw`([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}))`;
  it.each([
    ["JSON's characters", `root ::= "[" (text ",")* "]"\ntext ::= "\\"" ${character}{7,31} "\\""`],
    ["letters, then more", 'root ::= "[" "\\"" [a-zé]{3,31} ([0-9]{0,2} | " "{4}) "\\""'],
    ["two counts", `root ::= "[" ("\\"" [^"]{0,31} "\\"" ","?){1,2} "]"`],
    ["any characters, beside fewer letters", 'root ::= "[\\"" (.{0,31} | [a-z]{0,40}) "\\"" "\\n"'],
  ])("near both ends of a count: %s", (_, text) => {
    const parsed = grammar(text);
    const masker = parsed.masker(qwen3);
    const state = parsed.start();
    state.acceptBytes(Buffer.from('["'));
    for (let length = 0; length <= 31; ++length) {
      if (length < 9 || length > 19) {
        expect(Buffer.compare(whole(masker.mask(state)), masker.bruteForce(state)), `after ${length}`).toBe(0);
      }
      expect(state.acceptBytes(Buffer.from(length % 3 === 1 ? "é" : "a"))).toBe(length < 31);
      if (state.dead()) break;
    }
  });
});
