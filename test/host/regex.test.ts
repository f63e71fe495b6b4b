import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";
import { RegexError } from "../../src/regex/parse.js";
import { compileRegex } from "../../src/regex/program.js";
import { RegexScanner } from "../../src/regex/scanner.js";
import { randomSource } from "../support/test-addon.js";

/** Matches and the text between them, marked; the pieces are put together. */
function scan(pattern: string, pieces: readonly string[]): string {
  let out = "";
  const scanner = new RegexScanner(compileRegex(pattern), {
    text: (text) => {
      out += text;
    },
    match: (text) => {
      out += `‹${text}›`;
      return false;
    },
  });
  for (const piece of pieces) scanner.push(piece);
  scanner.finish();
  return out;
}

/** The same by another implementation of RE2's rules. */
function oracle(pattern: string, text: string): string {
  const matcher = RE2JS.compile(pattern).matcher(text);
  let out = "";
  let end = 0;
  while (matcher.find()) {
    if (matcher.start() === matcher.end()) continue;
    out += `${text.slice(end, matcher.start())}‹${matcher.group()}›`;
    end = matcher.end();
  }
  return out + text.slice(end);
}

const patterns = [
  "a",
  "ab|a",
  "a|ab",
  "a*",
  "a+?b?",
  "(?:ab)+",
  "<.*?>",
  "<.*>",
  "<[^>]*>",
  "(?s)<think>.*?</think>",
  "^a+",
  "b$",
  "(?m)^a|b$",
  "\\bab\\b",
  "\\Ba",
  "[a-c]{2,3}",
  "[^ab\\n]+",
  "(a|b|<)*c",
  "(?i)AB",
  "\\d+|\\s+",
  "x{0}b",
  "(a+)+b",
  "a.b",
  "\\Q<a>\\E",
  "[[:punct:]]a",
  "\\pL+",
  "é|😀",
  "[😀-😂]+",
  "(?U)a+b",
  "b??a",
  "",
];

describe("a scan", () => {
  it.each(patterns)("for /%s/ finds what RE2 finds, in any pieces", (pattern) => {
    const random = randomSource(pattern.length * 31 + 7);
    const alphabet = ["a", "a", "b", "b", "c", "<", ">", " ", "\n", "A", "1", "é", "😀", "<think>", "</think>"];
    for (let round = 0; round < 120; round++) {
      const parts = Array.from({ length: Math.floor(random() * 14) }, () => alphabet[Math.floor(random() * 15)] ?? "");
      const text = parts.join("");
      const expected = oracle(pattern, text);
      expect(scan(pattern, [text]), JSON.stringify(text)).toBe(expected);
      // By UTF-16 unit, which also cuts surrogates in two, and at random.
      expect(scan(pattern, text.split("")), `units of ${JSON.stringify(text)}`).toBe(expected);
      const cut = Math.floor(random() * text.length);
      expect(scan(pattern, [text.slice(0, cut), "", text.slice(cut)]), JSON.stringify(text)).toBe(expected);
    }
  });

  it("holds back no more than it must", () => {
    const out: string[] = [];
    const scanner = new RegexScanner(compileRegex("</?b>"), {
      text: (text) => void out.push(text),
      match: () => false,
    });
    for (const piece of ["one <", "i> two <b", "> three"]) scanner.push(piece);
    expect(out).toEqual(["one ", "<i> two ", " three"]);
  });

  it("takes time in proportion to the text", () => {
    // Backtracking would need 2^5000 steps for the first, and 10^9 for the second.
    const time = (length: number) => {
      const start = performance.now();
      expect(scan("(a*)*b", ["a".repeat(length)])).toBe("a".repeat(length));
      expect(scan("(?:a|aa)+$", [`${"a".repeat(length)}c`])).toBe(`${"a".repeat(length)}c`);
      return performance.now() - start;
    };
    time(1000);
    const small = time(2000);
    expect(time(20_000)).toBeLessThan(small * 40 + 50);
  });
});

describe("a pattern", () => {
  it.each([
    ["(", "missing"],
    ["a)", "without"],
    ["[a", "']' is missing"],
    ["*a", "repeats nothing"],
    ["a**", "needs a group"],
    ["a{3,2}", "not possible"],
    ["a{1001}", "not possible"],
    ["(?=a)", "look-around"],
    ["(?<!a)b", "look-around"],
    ["\\1", "not supported"],
    ["\\p{Nothing}", "no class"],
    ["[z-a]", "range is empty"],
    ["\\", "too early"],
    ["(?:(?:a{1000}){1000})", "too large"],
    ["(".repeat(300), "deeper"],
  ])("%s is refused", (pattern, message) => {
    expect(() => compileRegex(pattern)).toThrow(RegexError);
    expect(() => compileRegex(pattern)).toThrow(message);
  });
});
