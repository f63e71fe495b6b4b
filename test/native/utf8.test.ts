import { describe, expect, it } from "vitest";
import { chunkings, loadTestAddon, randomSource } from "../support/test-addon.js";

const addon = loadTestAddon();

function decode(pieces: Buffer[]): { text: string; deltas: string[] } {
  const holder = addon.utf8Holder();
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  // A delta that is not well-formed makes the strict decoder throw.
  const deltas = [...pieces.map((piece) => strict.decode(holder.push(piece))), strict.decode(holder.finish())];
  return { text: deltas.join(""), deltas };
}

/** What the platform's decoder makes of the bytes: the same rule for ill-formed input. */
const reference = (bytes: Buffer): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

describe("Utf8Holder", () => {
  const cases: [name: string, hex: string, text: string][] = [
    ["ASCII", "68690a", "hi\n"],
    ["a character of three bytes", "e6adaa", "歪"],
    ["two emoji", "f09f9880f09f9a80", "😀🚀"],
    ["an incomplete tail", "6869f09f", "hi\uFFFD"],
    ["overlong, surrogate, too large, then A", "c080eda080f490808041", `${"\uFFFD".repeat(9)}A`],
    ["a lone continuation byte", "618062", "a\uFFFDb"],
    ["a character cut short by another", "e6ade6adaa", "\uFFFD歪"],
    ["a genuine U+FFFD", "efbfbd41", "\uFFFDA"],
    ["a byte order mark is text", "efbbbf41", "\uFEFFA"],
    ["NUL", "610062", "a\0b"],
  ];
  for (const [name, hex, text] of cases) {
    it(`${name}, under every chunking`, () => {
      const bytes = Buffer.from(hex, "hex");
      expect(reference(bytes)).toBe(text);
      for (const pieces of chunkings(bytes)) expect(decode(pieces).text).toBe(text);
    });
  }

  it("publishes a character as soon as it is complete, and holds no more than it must", () => {
    const holder = addon.utf8Holder();
    expect(holder.push(Buffer.from("f09f", "hex")).toString()).toBe("");
    expect(holder.held()).toBe(2);
    expect(holder.push(Buffer.from("9880f09f9a", "hex")).toString()).toBe("😀");
    expect(holder.held()).toBe(3);
    expect(holder.push(Buffer.from("80", "hex")).toString()).toBe("🚀");
    expect(holder.held()).toBe(0);
  });

  it("agrees with the platform's decoder on random bytes, however they are cut", () => {
    const random = randomSource(7);
    for (let round = 0; round < 2000; round++) {
      // Mostly bytes that matter to UTF-8: leads and continuations.
      const bytes = Buffer.from(
        Array.from({ length: 1 + Math.floor(random() * 24) }, () =>
          random() < 0.3 ? Math.floor(random() * 128) : 128 + Math.floor(random() * 128),
        ),
      );
      const pieces: Buffer[] = [];
      for (let at = 0; at < bytes.length; ) {
        const next = Math.min(bytes.length, at + 1 + Math.floor(random() * 5));
        pieces.push(bytes.subarray(at, next));
        at = next;
      }
      expect(decode(pieces).text, bytes.toString("hex")).toBe(reference(bytes));
    }
  });
});
