import { describe, expect, it } from "vitest";
import { Random } from "../models/random.js";
import { grammar, ids, qwen3Pieces, vocabulary } from "../support/grammar.js";

const call = grammar(`root ::= "{" [a-c]* "}" "</t>"`);
const withMarker = grammar(`root ::= ("<t>" | "<tool>") "{" [a-c]* "}" "</t>"`);
const buffers = (texts: string[]) => texts.map((text) => Buffer.from(text));

describe("a grammar that begins at a marker", () => {
  const texts = ["hello", "<", "<t", "t>", ">", "<t>", "<t>{", ">{a", ">x", "{", "a", "}", "</t>", "</", "", "<t>{q"];
  const pieces = buffers(texts);
  const words = vocabulary(pieces);
  const id = (text: string) => texts.indexOf(text);

  it.each([
    ["behind the marker", call, false],
    ["with the marker", withMarker, true],
  ])("%s: also when the marker ends inside a token", (_, parsed, fromMarker) => {
    const lazy = parsed.lazy(buffers(["<t>", "<tool>"]), fromMarker, words);
    if (!lazy) throw new Error("refused");
    const all = texts.map((_, index) => index);
    const allowed = () => {
      const mask = ids(lazy.mask());
      expect(mask).toEqual(ids(lazy.bruteForce()));
      return mask;
    };
    expect(allowed()).toEqual(all.filter((index) => index !== id("<t>{q")));
    expect(lazy.canEnd()).toBe(true);
    for (const text of ["hello", "<", ">", "</t>", "<", "<t"]) expect(lazy.acceptToken(id(text))).toBe(true);
    expect(lazy.started()).toBe(false);
    expect(allowed()).toEqual(all.filter((index) => ![id(">x"), id("<t>{q")].includes(index)));
    expect(lazy.acceptToken(id(">{a"))).toBe(true);
    expect(lazy.started()).toBe(true);
    expect(lazy.canEnd()).toBe(false);
    expect(allowed()).toEqual([id("a"), id("}")].sort((x, y) => x - y));
    for (const text of ["a", "}", "</t>"]) expect(lazy.acceptToken(id(text))).toBe(true);
    expect(lazy.canEnd()).toBe(true);
    expect(allowed()).toEqual([]);
  });

  it("refuses markers that cannot work", () => {
    expect(call.lazy([], false, words)).toBeNull();
    expect(call.lazy(buffers([""]), false, words)).toBeNull();
    expect(call.lazy(buffers(["<t>"]), true, words)).toBeNull();
    expect(withMarker.lazy(buffers(["<t>", "<x>"]), true, words)).toBeNull();
  });

  it("masks as the matcher takes, over random vocabularies", () => {
    let started = 0;
    for (let seed = 0; seed < 200; ++seed) {
      const random = new Random(seed);
      const pick = (values: string) => values[random.uint32() % values.length] as string;
      const random_ = Array.from({ length: 150 }, () =>
        Buffer.from(Array.from({ length: random.uint32() % 6 }, () => pick("<<tto>>{{aab}}/ol")).join("")),
      );
      const lazy = withMarker.lazy(buffers(["<t>", "<tool>"]), true, vocabulary(random_));
      for (let step = 0; lazy && step < 40; ++step) {
        const mask = ids(lazy.mask());
        expect(mask, `seed ${seed}, step ${step}`).toEqual(ids(lazy.bruteForce()));
        if (mask.length === 0) break;
        lazy.acceptToken(mask[random.uint32() % mask.length] as number);
        started += lazy.started() ? 1 : 0;
      }
    }
    expect(started).toBeGreaterThan(50);
  });

  it("masks as the matcher takes, over Qwen3's vocabulary", () => {
    const pieces = qwen3Pieces();
    const parsed = grammar(`root ::= "\\n{\\"name\\": \\"" [a-z]+ "\\"}\\n</tool_call>"`);
    const lazy = parsed.lazy(buffers(["<tool_call>"]), false, vocabulary(pieces));
    const find = (text: string) => pieces.findIndex((piece) => piece.equals(Buffer.from(text)));
    for (const text of ["I", " will", " call", " <", "tool", "_call", ">\n", '{"', "name", '":', ' "', "get"]) {
      expect(find(text), text).toBeGreaterThanOrEqual(0);
      expect(Buffer.compare(lazy?.mask() as Uint8Array, lazy?.bruteForce() as Uint8Array), text).toBe(0);
      expect(lazy?.acceptToken(find(text)), text).toBe(true);
      expect(lazy?.started()).toBe(![" <", "I", " will", " call", "tool", "_call"].includes(text));
    }
  });
});
