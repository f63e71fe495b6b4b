import { describe, expect, it } from "vitest";
import { chunkings, loadTestAddon, randomSource } from "../support/test-addon.js";

const addon = loadTestAddon();

interface Run {
  text: string;
  stopped: boolean;
  deltas: string[];
  matched: number;
}

function run(pieces: (string | Buffer)[], stops: string[]): Run {
  const output = addon.outputText(stops);
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const deltas: string[] = [];
  let stopped = false;
  for (const piece of pieces) {
    const result = output.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    deltas.push(strict.decode(result.text));
    stopped = result.stopped;
    if (stopped) break;
  }
  if (!stopped) {
    const result = output.finish();
    deltas.push(strict.decode(result.text));
    stopped = result.stopped;
  }
  return { text: deltas.join(""), stopped, deltas, matched: output.matched() };
}

/** The rule, in one line of thought each: the match that is complete first; of those, the longest. */
function reference(text: string, stops: string[]): { text: string; matched: number } {
  const bytes = Buffer.from(text);
  for (let end = 1; end <= bytes.length; end++) {
    let best = -1;
    stops.forEach((stop, index) => {
      const pattern = Buffer.from(stop);
      const hit = pattern.length <= end && bytes.subarray(end - pattern.length, end).equals(pattern);
      if (hit && (best < 0 || pattern.length > Buffer.from(stops[best] ?? "").length)) best = index;
    });
    if (best >= 0)
      return { text: bytes.subarray(0, end - Buffer.from(stops[best] ?? "").length).toString(), matched: best };
  }
  return { text, matched: -1 };
}

describe("OutputText: stop strings", () => {
  const cases: [name: string, text: string, stops: string[], expected: string][] = [
    ["inside one piece", "one STOP two", ["STOP"], "one "],
    ["at the very start", "STOP two", ["STOP"], ""],
    ["none in the text", "abcdef", ["0123456789"], "abcdef"],
    ["only the beginning of one", "Alice! Hi", ["\n", "Alice:"], "Alice! Hi"],
    ["a beginning at the very end", "see Ali", ["Alice:"], "see Ali"],
    ["one that ends another", "x abcd y", ["cd", "abcd"], "x "],
    ["one that is complete before another", "xabcd", ["bc", "abcd"], "xa"],
    ["a beginning that repeats", "aaaab", ["aab"], "aa"],
    ["several bytes per character", "naïve 😀 end", ["😀"], "naïve "],
    ["sharing first bytes with another character", "😁😀", ["😀"], "😁"],
    ["U+FFFD itself", "a\uFFFDb", ["\uFFFD"], "a"],
  ];
  for (const [name, text, stops, expected] of cases) {
    it(`${name}, under every chunking`, () => {
      expect(reference(text, stops).text).toBe(expected);
      for (const pieces of chunkings(Buffer.from(text))) {
        const result = run(pieces, stops);
        expect(result.text).toBe(expected);
        expect(result.stopped).toBe(expected !== text);
      }
    });
  }

  it("sends at once what cannot begin a stop string", () => {
    expect(run(["abc", "def"], ["0123456789"]).deltas).toEqual(["abc", "def", ""]);
    expect(run(["ab", "c1", "2", "x"], ["123"]).deltas).toEqual(["ab", "c", "", "12x", ""]);
  });

  it("without stop strings passes everything at once", () => {
    expect(run(["a", "b"], []).deltas).toEqual(["a", "b", ""]);
  });

  it("a stop string completed by a replaced byte at the end ends the text", () => {
    const result = run([Buffer.from("61f09f", "hex")], ["a\uFFFD"]);
    expect(result).toMatchObject({ text: "", stopped: true, matched: 0 });
  });

  it("agrees with the rule on random texts, stop strings and cuts", () => {
    const random = randomSource(11);
    const letters = ["a", "b", "ü", "😀"];
    const word = (longest: number) =>
      Array.from(
        { length: 1 + Math.floor(random() * longest) },
        () => letters[Math.floor(random() * letters.length)],
      ).join("");
    for (let round = 0; round < 3000; round++) {
      const text = word(20);
      const stops = Array.from({ length: 1 + Math.floor(random() * 4) }, () => word(4));
      const bytes = Buffer.from(text);
      const pieces: Buffer[] = [];
      for (let at = 0; at < bytes.length; ) {
        const next = Math.min(bytes.length, at + 1 + Math.floor(random() * 4));
        pieces.push(bytes.subarray(at, next));
        at = next;
      }
      const expected = reference(text, stops);
      const result = run(pieces, stops);
      expect(result.text, JSON.stringify({ text, stops })).toBe(expected.text);
      expect(stops[result.matched], JSON.stringify({ text, stops })).toBe(stops[expected.matched]);
    }
  });

  it("is linear in the text for stop strings made to be slow", () => {
    // 4 x 1000 characters that match all but their last byte, over 2 MB: a quadratic matcher would not come back.
    const stops = [1, 2, 3, 4].map((n) => `${"a".repeat(999)}${n}`);
    const output = addon.outputText(stops);
    const piece = Buffer.from("a".repeat(1 << 16));
    let sent = 0;
    for (let i = 0; i < 32; i++) sent += output.push(piece).text.length;
    sent += output.finish().text.length;
    expect(sent).toBe(32 << 16);
  });
});
