import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { grammar, matches, refusal } from "../support/grammar.js";
import { chunkings } from "../support/test-addon.js";

const llamaGrammars = join("node_modules", "@novastera-oss", "llamarn", "cpp", "llama.cpp", "grammars");

/** Rows: a grammar, texts it holds, texts it does not. */
const dialect: [name: string, text: string, yes: string[], no: string[]][] = [
  ["literals", 'root ::= "abc"', ["abc"], ["", "ab", "abcd", "abd"]],
  ["an empty literal", 'root ::= ""', [""], ["a"]],
  ["an empty rule", "root ::=", [""], ["a"]],
  ["empty alternatives", 'root ::= | "a" | ', ["", "a"], ["aa"]],
  ["escapes", String.raw`root ::= "\n\t\r\\\"\[\]\-\x41\u00e9\U0001F600"`, ['\n\t\r\\"[]-Aé😀'], ['\n\t\r\\"[]-Aé']],
  ["\\x as a character, not a byte", String.raw`root ::= "\xFF"`, ["ÿ"], []],
  ["characters as they are", 'root ::= "日本語" [あ-ん]', ["日本語か"], ["日本語a", "日本"]],
  ["classes", "root ::= [a-cx0-9]", ["a", "c", "x", "5"], ["d", "", "ab", "-"]],
  ["negated classes", "root ::= [^a-c\\n]", ["d", "é", "😀", "\u0000"], ["a", "\n", ""]],
  ["a dash at the end of a class", "root ::= [+-] [a-]", ["+a", "--"], ["+b"]],
  ["escapes in classes", String.raw`root ::= [\]\[\-\\\x41\u00e9-\u00eb]`, ["]", "[", "-", "\\", "A", "ê"], ["a", "ì"]],
  ["a caret that is not first", "root ::= [a^]", ["^", "a"], ["b"]],
  ["any character", "root ::= .", ["a", "\n", "é", "😀"], ["", "ab"]],
  ["groups", 'root ::= ("a" | "b" "c")  "d"', ["ad", "bcd"], ["bd", "acd"]],
  [
    "alternatives that begin alike",
    'root ::= ("ab" | "abc" "d"? | "a" | "abd"+ | "b" root | "a" [x-z])',
    ["ab", "abc", "abcd", "a", "abd", "abdabd", "bab", "bbax"],
    ["abdabc", "b", "abx", "aab"],
  ],
  ["star", 'root ::= "ab"*', ["", "ab", "abab"], ["a", "aba"]],
  ["plus", "root ::= [0-9]+", ["1", "123"], ["", "1a"]],
  ["question mark", 'root ::= "a"? "b"', ["b", "ab"], ["aab"]],
  ["{m}", 'root ::= "a"{3}', ["aaa"], ["aa", "aaaa"]],
  ["{m,}", 'root ::= "a"{2,}', ["aa", "aaaaaa"], ["", "a"]],
  ["{m,n}", 'root ::= "a"{2,4}', ["aa", "aaa", "aaaa"], ["a", "aaaaa"]],
  ["{0,n}", 'root ::= "a"{0,2} "b"', ["b", "ab", "aab"], ["aaab"]],
  ["{0}", 'root ::= "a"{0} "b"', ["b"], ["ab"]],
  ["spaces in braces", 'root ::= "a"{ 1 , 2 }', ["a", "aa"], ["", "aaa"]],
  ["repetition of a repetition", 'root ::= "a"{2}{2} "b"*?', ["aaaa", "aaaabb"], ["aaa", "aaaaa"]],
  ["a call before a counted repetition", 'root ::= x "b"{2,3}\nx ::= "a"', ["abb", "abbb"], ["ab", "abbbb"]],
  ["counted empty bodies", 'root ::= ("a"?){3}', ["", "a", "aa", "aaa"], ["aaaa"]],
  ["counted empty bodies, unbounded", 'root ::= ("a" | ){3,}', ["", "a", "aaaaa"], ["b"]],
  ["stars of stars", 'root ::= ("a"*)*', ["", "a", "aaa"], ["b"]],
  ["plus of an empty group", "root ::= ()+", [""], ["a"]],
  ["comments", '# first\nroot ::= "a" # then\n# x ::= "\nb ::= "b" # last', ["a"], ["b"]],
  ["new lines in groups and after |", 'root ::= "a" |\n "b" (\n "c"\n | # or\n "d" )', ["a", "bc", "bd"], ["b"]],
  ["new lines after ::=", 'root ::=\n\n  "a"', ["a"], []],
  ["carriage returns", 'root ::= x\r\nx ::= "a"\r\n', ["a"], []],
  ["rules in any order", 'x-1 ::= "x"\nroot ::= x-1 Y2\nY2 ::= "y"', ["xy"], ["x"]],
  ["right recursion", 'root ::= "a" root | "b"', ["b", "aaab"], ["a", "ba"]],
  ["recursion in the middle", 'root ::= "(" root ")" | ""', ["", "(())"], ["(()", "())"]],
  ["ambiguity", 'root ::= ("a" | "aa" | "aaa")+', ["a", "aaaaaaa"], ["", "b"]],
];

describe("GBNF", () => {
  it.each(dialect)("%s", (_, text, yes, no) => {
    const parsed = grammar(text);
    for (const whole of yes) expect(matches(parsed, whole), JSON.stringify(whole)).toBe(true);
    for (const other of no) expect(matches(parsed, other), JSON.stringify(other)).toBe(false);
  });

  it("takes llama.cpp's own grammars", () => {
    const files = readdirSync(llamaGrammars).filter((name) => name.endsWith(".gbnf"));
    expect(files.length).toBeGreaterThan(5);
    const texts = Object.fromEntries(files.map((name) => [name, readFileSync(join(llamaGrammars, name), "utf8")]));
    for (const [name, text] of Object.entries(texts)) expect(refusal(text), name).toBeUndefined();
    const json = grammar(texts["json.gbnf"] as string);
    expect(matches(json, '{"a": [1, 2.5e3, {"b":null}], "é😀":"\\u12aF\\n"}')).toBe(true);
    expect(matches(json, '{"a": [1, 2.5e3, {"b":nul}]}')).toBe(false);
    expect(matches(json, '{"a":"\t"}')).toBe(false);
    const c = grammar(texts["c.gbnf"] as string);
    expect(matches(c, "int main(int a){return a+1;}")).toBe(true);
    expect(matches(c, "int main(int a){return a+;}")).toBe(false);
    expect(matches(grammar(texts["arithmetic.gbnf"] as string), "1+2=3\n")).toBe(true);
    expect(matches(grammar(texts["list.gbnf"] as string), "- one\n- two\n")).toBe(true);
  });

  it("names a token by its id", () => {
    const parsed = grammar('root ::= <[7]> "ab" !<[9]> "c"?');
    const none = Buffer.alloc(0);
    const state = parsed.start();
    expect(state.clone().acceptBytes(Buffer.from("a"))).toBe(false);
    expect(state.clone().acceptToken(8, none)).toBe(false);
    expect(state.acceptToken(7, none)).toBe(true);
    expect(state.acceptToken(7, Buffer.from("a"))).toBe(true);
    expect(state.acceptToken(9, Buffer.from("b"))).toBe(true);
    expect(state.clone().acceptToken(9, Buffer.from("c"))).toBe(false);
    expect(state.acceptToken(10, Buffer.from("anything"))).toBe(true);
    expect(state.canEnd()).toBe(true);
    expect(state.acceptToken(9, Buffer.from("c"))).toBe(true);
    expect(state.canEnd()).toBe(true);
  });

  it("reads a token both ways where both are allowed", () => {
    const state = grammar('root ::= <[1]> "x" | "ab" "y"').start();
    expect(state.acceptToken(1, Buffer.from("ab"))).toBe(true);
    expect(state.clone().acceptBytes(Buffer.from("x"))).toBe(true);
    expect(state.acceptBytes(Buffer.from("y"))).toBe(true);
  });
});

describe("UTF-8 classes", () => {
  const classes: [text: string, has: (code: number) => boolean][] = [
    ["[^\\x00-\\x1F\\x22\\\\]", (code) => code > 0x1f && code !== 0x22 && code !== 0x5c],
    ["[\\u0080-\\u07FF]", (code) => code >= 0x80 && code <= 0x7ff],
    ["[\\u07F0-\\u0810a]", (code) => (code >= 0x7f0 && code <= 0x810) || code === 0x61],
    ["[\\u0FFF-\\U00010000]", (code) => code >= 0xfff && code <= 0x10000],
    ["[\\U0001F5FF-\\U0001F700é]", (code) => (code >= 0x1f5ff && code <= 0x1f700) || code === 0xe9],
    ["[^é-\\U0001F600]", (code) => code < 0xe9 || code > 0x1f600],
    ["[^a]", (code) => code !== 0x61],
    [".", () => true],
  ];
  const edges = [0, 0x1f, 0x7f, 0x80, 0x7ff, 0x800, 0xfff, 0x1000, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x1f600, 0x3ffff];
  const codes = [...edges, 0x22, 0x5c, 0x61, 0xe8, 0xe9, 0x7f0, 0x810, 0x1f5ff, 0x1f700, 0x40000, 0x100000, 0x10ffff]
    .flatMap((code) => [code - 1, code, code + 1])
    .filter((code) => code >= 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff));

  it.each(classes)("%s holds what it says, however it is cut", (text, has) => {
    const parsed = grammar(`root ::= ${text} "!"`);
    for (const code of codes) {
      const whole = Buffer.from(`${String.fromCodePoint(code)}!`);
      for (const pieces of chunkings(whole)) {
        const state = parsed.start();
        const accepted = pieces.every((piece) => state.acceptBytes(piece)) && state.canEnd();
        expect(accepted, `U+${code.toString(16)}`).toBe(has(code));
      }
    }
  });

  it("holds nothing that is not UTF-8", () => {
    const parsed = grammar("root ::= [^a]");
    const ill = ["80", "bf", "c0", "c080", "c180", "e08080", "eda080", "edbfbf", "f0808080", "f4908080", "f5", "ff"];
    for (const hex of ill) expect(matches(parsed, Buffer.from(hex, "hex")), hex).toBe(false);
    for (const hex of ["c3", "e282", "f09f98"]) {
      const state = parsed.start();
      expect(state.acceptBytes(Buffer.from(hex, "hex")), hex).toBe(true);
      expect(state.canEnd(), hex).toBe(false);
    }
  });
});
