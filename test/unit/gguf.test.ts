import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Metadata, readGguf, type Tensor, type TensorType, tensorTypes, writeGguf } from "../models/gguf.js";
import { nanoModel } from "../models/nano.js";
import { randomFill } from "../models/random.js";

const folder = mkdtempSync(join(tmpdir(), "tokenloop-gguf-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const metadata: Metadata = {
  "general.architecture": { type: "string", value: "qwen3" },
  "a.number": { type: "uint32", value: 4000000000 },
  "a.fraction": { type: "float32", value: 0.5 },
  "a.flag": { type: "bool", value: true },
  "some.strings": { type: "strings", value: ["a", "ünï", ""] },
  "some.integers": { type: "int32s", value: new Int32Array([1, -1]) },
};
const tensors = (): Tensor[] => [
  { name: "ones", type: "F32", shape: [5], fill: randomFill("F32", 0.02, 1) },
  { name: "eights", type: "Q8_0", shape: [64, 3], fill: randomFill("Q8_0", 0.02, 2) },
  { name: "fours", type: "Q4_0", shape: [32, 2], fill: randomFill("Q4_0", 0.02, 3) },
  { name: "halves", type: "F16", shape: [3, 2], fill: randomFill("F16", 0.02, 4) },
];

/** Of a normal binary16 number, little-endian. */
function fromHalf(bytes: Uint8Array, at: number): number {
  const bits = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
  const magnitude = 2 ** (((bits >> 10) & 31) - 15) * (1 + (bits & 1023) / 1024);
  return bits & 0x8000 ? -magnitude : magnitude;
}

function dequantise(type: Exclude<TensorType, "F32">, bytes: Uint8Array): number[] {
  const weights: number[] = [];
  for (let at = 0; at < bytes.length; at += tensorTypes[type].bytes) {
    const scale = fromHalf(bytes, at);
    if (type === "F16") weights.push(scale);
    else
      for (const byte of bytes.subarray(at + 2, at + tensorTypes[type].bytes)) {
        if (type === "Q8_0") weights.push(((byte << 24) >> 24) * scale);
        else weights.push(((byte & 15) - 8) * scale, ((byte >> 4) - 8) * scale);
      }
  }
  return weights;
}

describe("the GGUF writer", () => {
  it("writes what the reader reads, each tensor aligned", () => {
    const path = join(folder, "round-trip.gguf");
    writeGguf(path, metadata, tensors());
    const read = readGguf(path);
    expect(read.version).toBe(3);
    expect(read.metadata).toEqual({
      "general.architecture": "qwen3",
      "a.number": 4000000000,
      "a.fraction": 0.5,
      "a.flag": true,
      "some.strings": 3,
      "some.integers": 2,
    });
    expect(read.tensors).toEqual([
      { name: "ones", shape: [5], type: 0, offset: 0 },
      { name: "eights", shape: [64, 3], type: 8, offset: 32 },
      { name: "fours", shape: [32, 2], type: 2, offset: 32 + 224 },
      { name: "halves", shape: [3, 2], type: 1, offset: 32 + 224 + 64 },
    ]);
    expect(statSync(path).size % 32).toBe(0);
  });

  it("is deterministic", () => {
    const hashes = ["one.gguf", "two.gguf"].map((name) => {
      const path = join(folder, name);
      writeGguf(path, metadata, tensors());
      return createHash("sha256").update(readFileSync(path)).digest("hex");
    });
    expect(hashes[0]).toBe(hashes[1]);
  });

  it("leaves nothing behind when it fails", () => {
    const full: Tensor = {
      name: "full",
      type: "F32",
      shape: [4],
      fill() {
        throw new Error("disk full");
      },
    };
    expect(() => writeGguf(join(folder, "failed.gguf"), metadata, [full])).toThrow("disk full");
    expect(readdirSync(folder).filter((name) => name.startsWith("failed"))).toEqual([]);
  });
});

describe("random weights", () => {
  it.each(["F16", "Q8_0", "Q4_0"] as const)("of type %s have mean 0 and the deviation asked for", (type) => {
    const { block, bytes } = tensorTypes[type];
    const whole = new Uint8Array((8192 / block) * bytes);
    randomFill(type, 0.02, 9)(whole);
    const weights = dequantise(type, whole);
    expect(weights).toHaveLength(8192);
    const deviation = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0) / weights.length);
    expect(deviation).toBeGreaterThan(0.0195);
    expect(deviation).toBeLessThan(0.0205);
    // A mean other than zero adds up from layer to layer, until the prompt no longer matters.
    expect(Math.abs(weights.reduce((sum, weight) => sum + weight, 0) / weights.length)).toBeLessThan(0.001);

    const pieces = new Uint8Array(whole.length);
    const fill = randomFill(type, 0.02, 9);
    fill(pieces.subarray(0, whole.length / 2));
    fill(pieces.subarray(whole.length / 2));
    expect(Buffer.compare(pieces, whole)).toBe(0);
    const otherSeed = new Uint8Array(whole.length);
    randomFill(type, 0.02, 10)(otherSeed);
    expect(Buffer.compare(otherSeed, whole)).not.toBe(0);
  });

  it("refuse a deviation that their scale cannot hold", () => {
    expect(() => randomFill("Q8_0", 1e-9, 1)).toThrow(RangeError);
  });
});

describe("the GGUF reader", () => {
  it("reads nano", () => {
    const { metadata: nano } = readGguf(nanoModel());
    expect(nano).toMatchObject({
      "general.architecture": "qwen3",
      "general.name": "nano-chat",
      "qwen3.block_count": 5,
      "qwen3.context_length": 2048,
      "tokenizer.ggml.tokens": 1536,
    });
  });

  it("says so when a file ends early or is something else", () => {
    const path = join(folder, "cut.gguf");
    writeGguf(path, metadata, tensors());
    const whole = readFileSync(path);
    for (const bytes of [0, 3, 20, 60, 150]) {
      truncateSync(path, bytes);
      expect(() => readGguf(path), `${bytes} bytes`).toThrow(/ends at byte \d+, inside its header/);
      writeFileSync(path, whole);
    }
    // 32 bytes of padded data hold the last tensor.
    truncateSync(path, whole.length - 30);
    expect(() => readGguf(path)).toThrow("inside tensor halves");
    writeFileSync(path, "This is something else entirely.");
    expect(() => readGguf(path)).toThrow("not a GGUF file");
  });

  it("does not believe a damaged length", () => {
    const path = join(folder, "damaged.gguf");
    writeGguf(path, metadata, tensors());
    const bytes = readFileSync(path);
    bytes.writeBigUInt64LE(1n << 40n, 24); // length of the first key
    writeFileSync(path, bytes);
    expect(() => readGguf(path)).toThrow("inside its header");
  });
});
