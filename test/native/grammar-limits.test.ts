import { describe, expect, it } from "vitest";
import { grammar, ids, matches, refusal, vocabulary } from "../support/grammar.js";

/** Rows: a text, the place and the words of its refusal. */
const refused: [name: string, text: string, line: number, column: number, message: RegExp][] = [
  ["nothing", "", 1, 1, /"root" is not defined/],
  ["no root", 'a ::= "a"', 1, 1, /"root" is not defined/],
  ["an undefined rule", 'root ::= "a" |\n  é', 2, 3, /cannot stand here/],
  ["an undefined rule", 'root ::= "é" x', 1, 14, /"x" is not defined/],
  ["a rule twice", 'root ::= "a"\nb ::= "b"\nb ::= "c"', 3, 1, /"b" is defined twice/],
  ["no ::=", 'root = "a"', 1, 6, /"::=" is expected/],
  ["a name alone", "root", 1, 5, /"::=" is expected/],
  ["no name", '::= "a"', 1, 1, /name is expected/],
  ["an underscore", 'ro_ot ::= "a"', 1, 3, /"::=" is expected/],
  ["| on a new line", 'root ::= "a"\n | "b"', 2, 2, /name is expected/],
  ["an open literal", 'root ::= "abc', 1, 10, /literal is not closed/],
  ["an open literal after a backslash", 'root ::= "abc\\', 1, 10, /literal is not closed/],
  ["an open class", "root ::= [abc", 1, 10, /class is not closed/],
  ["an open class in a range", "root ::= [a-", 1, 10, /class is not closed/],
  ["an open group", 'root ::= ("a" ("b")', 1, 10, /parenthesis is not closed/],
  ["an unopened group", 'root ::= "a")', 1, 13, /never opened/],
  ["an open count", 'root ::= "a"{', 1, 14, /number is expected/],
  ["an open count with a number", 'root ::= "a"{3', 1, 15, /"}" is expected/],
  ["an open count with a comma", 'root ::= "a"{3,', 1, 16, /"}" is expected/],
  ["a count without a minimum", 'root ::= "a"{,3}', 1, 14, /number is expected/],
  ["a count upside down", 'root ::= "a"{5,3}', 1, 13, /minimum is above its maximum/],
  ["billions", 'root ::= "a"{2000000000,2147483647}', 1, 13, /100000 at most/],
  ["a maximum of billions", 'root ::= "a"{0,99999999999999999999999}', 1, 13, /100000 at most/],
  ["a minimum beyond the limit", 'root ::= "a"{100001,}', 1, 13, /100000 at most/],
  ["a repetition of nothing", "root ::= *", 1, 10, /nothing stands before/],
  ["a repetition after |", 'root ::= "a" | +', 1, 16, /nothing stands before/],
  ["a repetition in a group", 'root ::= (?"a")', 1, 11, /nothing stands before/],
  ["an unknown escape", 'root ::= "a\\q"', 1, 12, /unknown escape/],
  ["short \\x", 'root ::= "\\x4"', 1, 11, /2 hexadecimal digits/],
  ["short \\u", "root ::= [\\u12]", 1, 11, /4 hexadecimal digits/],
  ["short \\U", 'root ::= "\\U0001F60"', 1, 11, /8 hexadecimal digits/],
  ["beyond Unicode", 'root ::= "\\U00110000"', 1, 11, /above U\+10FFFF/],
  ["a surrogate", 'root ::= "\\uD800"', 1, 11, /surrogate/],
  ["a class of surrogates", "root ::= [\\uD800-\\uDFFF]", 1, 10, /no character/],
  ["an empty class", "root ::= []", 1, 10, /no character/],
  ["a range upside down", "root ::= [a5-3]", 1, 12, /ends before it begins/],
  ["a token by its text", "root ::= <think>", 1, 10, /by its id/],
  ["an open token", "root ::= <[5", 1, 13, /"\]>" is expected/],
  ["a token without a number", "root ::= <[x]>", 1, 12, /number is expected/],
  ["a token beyond all ids", "root ::= <[99999999999]>", 1, 10, /no token/],
  ["! alone", 'root ::= !"a"', 1, 11, /"<" is expected/],
  ["a stray character", 'root ::= "a" $', 1, 14, /cannot stand here/],
  ["a stray character in a group", 'root ::= ("a" $)', 1, 15, /cannot stand here/],
  ["left recursion", 'root ::= root "a" | "b"', 1, 1, /"root" can begin with itself/],
  ["left recursion of two", 'root ::= a\na ::= b "x"\nb ::= a | "y"', 2, 1, /"a" can begin with itself/],
  ["left recursion in a group", 'root ::= x\nx ::= ("a" | (x "b"))', 2, 1, /"x" can begin with itself/],
  ["left recursion behind an empty rule", 'root ::= e root "a" | "b"\ne ::= "e"?', 1, 1, /"root" can begin/],
  ["left recursion behind a count of none", 'root ::= ("e"{0,5}){7} root', 1, 1, /"root" can begin/],
  ["left recursion in a repetition", 'root ::= (root "a"){2,3}', 1, 1, /"root" can begin/],
  ["left recursion of nothing", "root ::= root", 1, 1, /"root" can begin/],
];

describe("refusals", () => {
  it.each(refused)("%s: %j", (_, text, line, column, message) => {
    const error = refusal(text);
    expect(error).toMatchObject({ line, column });
    expect(error?.message).toMatch(message);
  });

  it("counts lines with both ends of line", () => {
    expect(refusal('root ::= "a"\r\n\r\nb ::= $')).toMatchObject({ line: 3, column: 7 });
  });
});

/** Runs within a second: what poisons a parser takes minutes, or the process. */
function quickly<T>(run: () => T): T {
  const start = performance.now();
  const result = run();
  expect(performance.now() - start).toBeLessThan(1000);
  return result;
}

describe("limits", () => {
  it("nests a thousand deep, and no deeper", () => {
    const nested = (depth: number, sign = "") => `root ::= ${"(".repeat(depth)}"a"${`)${sign}`.repeat(depth)}`;
    expect(matches(grammar(nested(1000)), "a")).toBe(true);
    expect(matches(grammar(nested(1000, "*")), "aaaa")).toBe(true);
    const counted = quickly(() => grammar(nested(1000, "{1,3}")).start());
    expect(quickly(() => counted.acceptBytes(Buffer.from("aaaa")))).toBe(false);
    expect(counted.overflowed()).toBe(true);
    expect(refusal(nested(1001))?.message).toMatch(/1000 deep/);
    expect(quickly(() => refusal(nested(60_000)))?.message).toMatch(/1000 deep/);
    expect(quickly(() => refusal(`root ::= ${"(".repeat(60_000)}`))?.message).toMatch(/1000 deep/);
  });

  it("takes a megabyte, and no more", () => {
    const comment = (bytes: number) => `root ::= "a"\n#${"x".repeat(bytes - 14)}`;
    expect(quickly(() => refusal(comment(1 << 20)))).toBeUndefined();
    expect(refusal(comment((1 << 20) + 1))?.message).toMatch(/1048576 bytes/);
  });

  it("takes 20,000 rules, and no more", () => {
    const chain = (count: number) =>
      `root ::= r1\n${Array.from({ length: count - 2 }, (_, i) => `r${i + 1} ::= r${i + 2}`).join("\n")}\nr${count - 1} ::= "a"?`;
    expect(
      matches(
        quickly(() => grammar(chain(20_000))),
        "a",
      ),
    ).toBe(true);
    expect(refusal(chain(20_001))?.message).toMatch(/20000 rules/);
  });

  it("takes no time for what multiplies elsewhere", () => {
    const poison = [
      `root ::= ${'"a"?'.repeat(1500)}`,
      `root ::= "a"${"{100000}".repeat(50)}`,
      `root ::= ("a"${"{0,100000}){0,100000}"} ("b"*)*`,
      `root ::= ("a"*)*${"*".repeat(1000)}`,
      `root ::= ${"[^a]".repeat(20_000)}`,
      `root ::= "${"\\U0001F600".repeat(50_000)}"`,
      `root ::= ${Array.from({ length: 1500 }, (_, i) => `"${i}"`).join(" | ")}`,
      `root ::= ${"x\n".repeat(1)}x ::= ${'("a" | x2)?'.repeat(300)}\nx2 ::= "b"`,
    ];
    for (const text of poison) {
      const state = quickly(() => grammar(text).start());
      quickly(() => state.acceptBytes(Buffer.from("aaaaaaaaaaaaaaaaaaaaaaaa")));
    }
  });

  it("reads an enumeration of thousands at one place", () => {
    const words = Array.from({ length: 10_000 }, (_, i) => `value_${i * 7919}`);
    const list = words.map((word) => `"${word}"`).join(" | ");
    const parsed = quickly(() => grammar(`root ::= (${list} | [x-z]) "!"`));
    for (const word of words) expect(matches(parsed, `${word}!`)).toBe(true);
    expect(matches(parsed, "y!")).toBe(true);
    expect(matches(parsed, "value_1!")).toBe(false);
    const state = parsed.start();
    for (const byte of Buffer.from("value_79")) {
      state.accept(byte);
      expect(state.threads()).toBeLessThan(3);
    }
  });

  it("refuses what begins in too many ways", () => {
    const doubling = Array.from({ length: 30 }, (_, i) => `r${i} ::= r${i + 1} r${i + 1}`).join("\n");
    expect(quickly(() => refusal(`root ::= r0\n${doubling}\nr30 ::= "a"?`))?.message).toMatch(/too many ways/);
  });

  it("fails a state that becomes too ambiguous, and says so", () => {
    const state = grammar('root ::= (("a"{1,1000}){1,1000}){1,1000}').start();
    quickly(() => {
      for (let i = 0; i < 1000 && state.accept(0x61); ++i);
    });
    expect(state.overflowed()).toBe(true);
    expect(state.dead()).toBe(true);
    expect(state.canEnd()).toBe(false);
    expect(state.accept(0x61)).toBe(false);
  });
});

describe("counted repetition", () => {
  it("costs nothing at 100,000", () => {
    const parsed = quickly(() => grammar('root ::= "a"{99999,100000} "b"'));
    expect(parsed.bytes).toBeLessThan(2000);
    const state = parsed.start();
    quickly(() => expect(state.acceptBytes(Buffer.alloc(99_998, "a"))).toBe(true));
    expect(state.clone().accept(0x62)).toBe(false);
    expect(state.accept(0x61)).toBe(true);
    expect(state.clone().accept(0x62)).toBe(true);
    expect(state.accept(0x61)).toBe(true);
    expect(state.clone().accept(0x61)).toBe(false);
    expect(state.accept(0x62)).toBe(true);
    expect(state.canEnd()).toBe(true);
  });

  it("keeps states small over a minimum without a maximum", () => {
    const state = grammar('root ::= [a-z]{3,} "!"').start();
    state.acceptBytes(Buffer.from("abcd"));
    const hash = state.hash();
    state.acceptBytes(Buffer.from("abcdefghijklmnop"));
    expect(state.hash()).toBe(hash);
  });

  it("keeps stacks flat along right recursion", () => {
    const state = grammar('root ::= "a" root | "b"').start();
    state.acceptBytes(Buffer.from("aa"));
    const hash = state.hash();
    quickly(() => state.acceptBytes(Buffer.alloc(100_000, "a")));
    expect(state.hash()).toBe(hash);
  });

  it("takes stacks 100,000 deep down again", () => {
    const parsed = grammar('root ::= "(" root ")" | "x"');
    const state = parsed.start();
    expect(quickly(() => state.acceptBytes(Buffer.alloc(100_000, "(")))).toBe(true);
    const masker = parsed.masker(vocabulary(["(", ")", "x", "x)", "x))))"].map((text) => Buffer.from(text))));
    expect(ids(quickly(() => masker.mask(state)))).toEqual([0, 2, 3, 4]);
    expect(quickly(() => state.acceptBytes(Buffer.from(`x${")".repeat(100_000)}`)))).toBe(true);
    expect(state.canEnd()).toBe(true);
  });
});
