import { describe, expect, it } from "vitest";
import { BadRequestError } from "../../src/errors.js";
import { toNativeRequest } from "../../src/openai/map.js";
import { knownFields } from "../../src/openai/request-schema.js";
import { validateRequest } from "../../src/openai/validate.js";

/** A small generator with a seed (mulberry32), so that a failure can be run again. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const keys = [
  ...knownFields,
  ...["role", "content", "type", "text", "name", "tool_call_id", "id", "function", "arguments", "include_usage"],
  ...["__proto__", "constructor", "length", "0", "12", "-1", ""],
];
const leaves: unknown[] = [
  ...[
    null,
    undefined,
    true,
    false,
    0,
    1,
    -1,
    0.5,
    2 ** 31,
    2 ** 53,
    1e308,
    Number.NaN,
    Infinity,
    5n,
    Symbol("s"),
    () => 1,
  ],
  ...["", "x", "user", "assistant", "tool", "system", "text", "function", "\uD800", "a".repeat(2000), new Date(0), /x/],
];

function anything(next: () => number, depth: number): unknown {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T;
  const roll = next();
  if (depth === 0 || roll < 0.4) return pick(leaves);
  const count = Math.floor(next() * 4);
  if (roll < 0.6) return Array.from({ length: count }, () => anything(next, depth - 1));
  const object: object = next() < 0.5 ? {} : Object.create(null);
  for (let i = 0; i < count; i++) {
    const value = anything(next, depth - 1);
    Object.defineProperty(object, pick(keys), { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}

describe("request validation", () => {
  it("accepts or refuses with a 400 that names a field, whatever comes", () => {
    const seen = { accepted: 0, refused: 0 };
    for (let seed = 1; seed <= 20_000; seed++) {
      const next = random(seed);
      const wild = anything(next, 5);
      // Half of them on top of a good request, so that single fields are reached.
      const body =
        seed % 2 === 0 && typeof wild === "object" && !Array.isArray(wild)
          ? { messages: [{ role: "user", content: "hi" }], ...wild }
          : { messages: [{ role: "user", content: "hi" }, wild] };
      try {
        const request = toNativeRequest(validateRequest(body), 100, "");
        expect(() => JSON.parse(request.messages ?? "")).not.toThrow();
        seen.accepted++;
      } catch (error) {
        if (!(error instanceof BadRequestError)) throw new Error(`seed ${seed}`, { cause: error });
        expect(error.param, `seed ${seed}`).toBeTypeOf("string");
        seen.refused++;
      }
    }
    // Both paths are reached.
    expect(seen.accepted).toBeGreaterThan(100);
    expect(seen.refused).toBeGreaterThan(1000);
  });
});
