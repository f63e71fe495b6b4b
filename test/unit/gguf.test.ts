import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Metadata, readGguf, type Tensor, writeGguf } from "../models/gguf.js";
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
];

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
    ]);
  });

  it("is deterministic, and fills weights of the deviation asked for", () => {
    const hashes = ["one.gguf", "two.gguf"].map((name) => {
      const path = join(folder, name);
      writeGguf(path, metadata, tensors());
      return createHash("sha256").update(readFileSync(path)).digest("hex");
    });
    expect(hashes[0]).toBe(hashes[1]);

    const block = new Uint8Array(34 * 200);
    randomFill("Q8_0", 0.02, 9)(block);
    const scaleBits = (block[0] ?? 0) | ((block[1] ?? 0) << 8);
    const scale = 2 ** ((scaleBits >> 10) - 15) * (1 + (scaleBits & 1023) / 1024);
    const weights = [...block.keys()]
      .filter((at) => at % 34 >= 2)
      .map((at) => (((block[at] ?? 0) << 24) >> 24) * scale);
    const deviation = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0) / weights.length);
    expect(deviation).toBeGreaterThan(0.018);
    expect(deviation).toBeLessThan(0.022);
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
    for (const bytes of [3, 20, 60, 150]) {
      truncateSync(path, bytes);
      expect(() => readGguf(path)).toThrow(/ends at byte|not a GGUF/);
      writeGguf(path, metadata, tensors());
    }
    writeFileSync(path, "This is something else entirely.");
    expect(() => readGguf(path)).toThrow("not a GGUF file");
  });
});
