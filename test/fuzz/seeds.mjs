// What fuzzing begins with: grammars and patterns that have broken parsers and matchers elsewhere, and plain ones.

const many = (count, item) => Array.from({ length: count }, (_, i) => item(i));

/** [grammar, text that it should be tried on] */
export const grammars = [
  ['root ::= "a"', "a"],
  ['root ::= ("a" | "ab" "c")* [^x-z]+ . "é"?', "aababcqé"],
  [String.raw`root ::= "\n\t\r\\\"\[\]\-\x41\u00e9\U0001F600"`, '\n\t\r\\"[]-Aé😀'],
  ["root ::= [a-cx0-9] [^a-c\\n] [+-] [a-]", "a9+-"],
  ['# first\nroot ::=\n  a | # then\n  b\r\na ::= "x"{2} b\nb ::= "y"{1,3} ("z"{2,})? ""', "xxyyzz"],
  ['root ::= <[7]> "ab" !<[9]> "c"?', "abc"],
  ['root ::= "(" root ")" | "x"', "((x))"],
  ['root ::= "[" (item ("," item)*)? "]"\nitem ::= [0-9]+ | root', "[1,[2,3],[]]"],
  [
    `root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (string ":" value ("," string ":" value)*)? "}"
array ::= "[" (value ("," value)*)? "]"
string ::= "\\"" ([^"\\\\\\x00-\\x1F] | "\\\\" (["\\\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?`,
    '{"a":[1,-2.5e+1,"é\\n\\u00e9",null],"":{}}',
  ],
  // Recursion: endless, left, behind what may be empty, doubling.
  ['root ::= root "a" | "b"', "ba"],
  ['root ::= e root "a" | "b"\ne ::= "e"?', "eeba"],
  ["root ::= root", ""],
  [`root ::= r0\n${many(12, (i) => `r${i} ::= r${i + 1} r${i + 1}`).join("\n")}\nr12 ::= "a"?`, "aaaa"],
  ['root ::= ("a"*)*', "aaaa"],
  ['root ::= (("a"?)*"b"?)+{2,3}', "aab"],
  ['root ::= [a-z ] root root | ""', "the quick"],
  ['root ::= a a a\na ::= [a-z ] a a | [a-z ] | a2\na2 ::= "b" a', "abab"],
  // Repetition: huge, upside down, multiplied, of nothing.
  ['root ::= "a"{2000000000,2147483647}', "aa"],
  ['root ::= "a"{5,3}', "aaaa"],
  ['root ::= "a"{99999,100000} "b"', "aaab"],
  ['root ::= (("a"{1,1000}){1,1000}){1,1000}', "aaaaaa"],
  ['root ::= ("a"{0,100000}){0,100000} ("b"*)*', "aab"],
  [`root ::= "a"${"{9}".repeat(20)}`, "aaaaaaaaaaaa"],
  [`root ::= ${'"a"?'.repeat(60)}`, "aaaa"],
  ['root ::= ("a"?){3} ("a" | ){3,} ()+', "aaaaaa"],
  ['root ::= ([a-z]{3,40} | "the " .{0,9}){1,3} "!"', "the quick brown!"],
  // Depth and breadth.
  [`root ::= ${"(".repeat(300)}"a"${")".repeat(300)}`, "a"],
  [`root ::= ${"(".repeat(200)}"a"${"){1,3}".repeat(200)}`, "aaaa"],
  [`root ::= ${"(".repeat(1500)}`, ""],
  [`root ::= ${many(80, (i) => `"${i * 7}"`).join(" | ")}`, "49"],
  [`root ::= ("x" | ${many(40, (i) => `[a-z]{${i},${i + 3}}`).join(" | ")})`, "abcdef"],
  // Not closed, not known, not there.
  ['root ::= "abc', ""],
  ["root ::= [a-", ""],
  ['root ::= ("a" ("b")', "a"],
  ["root ::= [\\uD800-\\uDFFF] []", ""],
  ["root ::= <[99999999999]> <think>", ""],
  ["root = x\n | y $ é", ""],
];

/** Regular expressions, as in a schema's `pattern`. */
export const patterns = [
  "^[a-z]+$",
  "^(\\d+|imap:[A-Za-z0-9_-]+)$",
  "^(cat|dog)$",
  "^good day\\!$",
  "a|b",
  "^[^\\s\\d]{2,5}$",
  "(?:ab?){2}c*?",
  "^(?<year>\\d{4})-(?<month>\\d{2})$",
  "[\\w.-]+@[\\w-]+\\.[a-z]{2,}",
  "^.{1,3}$",
  "\\u0041\\x42\\cJ\\0\\/",
  "^\\p{Lu}\\P{L}$",
  "^[\\u{1F600}-\\u{1F64F}]$",
  "^\\ud83d\\ude00$",
  "$^",
  "(^a|b$)+",
  "^?[0-9]$",
  "^(?=.*[A-Z])(?!x).{8,}$",
  "(?<=a)b",
  "(a)\\1",
  "\\bword\\b",
  "(a+)+$",
  "^(([a-z])+.)+[A-Z]([a-z])+$",
  "a{99999}",
  "a{5,3}",
  "(((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9})",
  `${"(".repeat(70)}a${")".repeat(70)}`,
  "[\\s\\S]*",
  "[",
  "(",
  "a)",
  "\\",
  "[b-a]",
  "{",
  "a{1",
  "[]",
  "[^]",
  "x*+",
];
