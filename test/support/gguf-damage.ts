import { readFileSync } from "node:fs";
import { nanoModel } from "../models/nano.js";
import { randomSource } from "./test-addon.js";

/** A damaged copy of nano. `code`: what it is refused with; absent: an error or a harmless load, but never a crash. */
export interface Damage {
  name: string;
  bytes: Buffer;
  code?: string;
  /** Part of the message. */
  says?: string;
}

const valueTypes = { uint8: 0, uint16: 2, uint32: 4, int32: 5, float32: 6, string: 8, array: 9, uint64: 10 } as const;

/** nano's header, to be cut up. Offsets are found by looking for the names: what is tested must not parse it itself. */
class Header {
  readonly bytes = Buffer.from(readFileSync(nanoModel()));
  static readonly version = 4;
  static readonly tensorCount = 8;
  static readonly entryCount = 16;

  find(text: string): number {
    const at = this.bytes.indexOf(Buffer.from(text));
    if (at < 0) throw new Error(`nano has no '${text}'`);
    return at;
  }

  /** Where the type of a metadata value is; the value follows, of an array its element type and length. */
  value(key: string): number {
    return this.find(key) + key.length;
  }

  /** Where the number of dimensions of a tensor is; sizes, type and offset follow. */
  tensor(name: string): number {
    return this.find(name) + name.length;
  }
}

function change(name: string, code: string, says: string, edit: (header: Header) => Buffer | undefined): Damage {
  const header = new Header();
  const bytes = edit(header) ?? header.bytes;
  return { name, bytes, code, says };
}

const set32 = (key: string, value: number) => (h: Header) => void h.bytes.writeUInt32LE(value, h.value(key) + 4);
const cut = (length: (h: Header) => number) => (h: Header) => h.bytes.subarray(0, length(h));

/** Puts an entry in front of all others. */
function insert(key: string, type: keyof typeof valueTypes, value: Buffer) {
  return (h: Header): Buffer => {
    const head = Buffer.from(h.bytes.subarray(0, 24));
    head.writeBigUInt64LE(head.readBigUInt64LE(Header.entryCount) + 1n, Header.entryCount);
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(key.length));
    const kind = Buffer.alloc(4);
    kind.writeUInt32LE(valueTypes[type]);
    return Buffer.concat([head, length, Buffer.from(key), kind, value, h.bytes.subarray(24)]);
  };
}

const uint32 = (value: number) => Buffer.from(new Uint32Array([value]).buffer);
const uint64 = (value: bigint) => Buffer.from(new BigUint64Array([value]).buffer);
const huge = 0x7fff_ffff_ffff_ffffn;

/** Hostile headers, each with the reason that it is refused for. */
export function hostileModels(): Damage[] {
  const corrupt = "gguf_corrupt";
  return [
    change(
      "empty file",
      "gguf_foreign",
      "0 bytes",
      cut(() => 0),
    ),
    change(
      "three bytes",
      "gguf_foreign",
      "3 bytes",
      cut(() => 3),
    ),
    change(
      "magic only",
      "gguf_truncated",
      "after 4 bytes",
      cut(() => 4),
    ),
    change(
      "cut in the counts",
      "gguf_truncated",
      "header",
      cut(() => 20),
    ),
    change(
      "cut in a key",
      "gguf_truncated",
      "metadata entry 1",
      cut(() => 40),
    ),
    change(
      "cut in the vocabulary",
      "gguf_truncated",
      "tokenizer.ggml.tokens",
      cut((h) => h.find("tokenizer.ggml.tokens") + 900),
    ),
    change(
      "cut in the tensor infos",
      corrupt,
      "more data than the file has",
      cut((h) => h.tensor("token_embd.weight") + 99),
    ),
    change(
      "cut in the tensor data",
      "gguf_truncated",
      "data of tensor",
      cut((h) => h.bytes.length - 400),
    ),
    change("something else", "gguf_foreign", "PK", (h) => void h.bytes.write("PK\x03\x04", "latin1")),
    change("version 1", "gguf_unsupported", "version 1", (h) => void h.bytes.writeUInt32LE(1, Header.version)),
    change("version 4", "gguf_unsupported", "version 4", (h) => void h.bytes.writeUInt32LE(4, Header.version)),
    change("big-endian", "gguf_unsupported", "big-endian", (h) => void h.bytes.writeUInt32BE(3, Header.version)),
    change("absurd tensor count", corrupt, "tensors", (h) => void h.bytes.writeBigUInt64LE(huge, Header.tensorCount)),
    change("absurd entry count", corrupt, "entries", (h) => void h.bytes.writeBigUInt64LE(huge, Header.entryCount)),
    change("one entry too many", corrupt, "", (h) => void h.bytes.writeUInt32LE(25, Header.entryCount)),
    change("empty key", corrupt, "empty", (h) => void h.bytes.writeBigUInt64LE(0n, 24)),
    change("endless key", corrupt, "longer than", (h) => void h.bytes.writeBigUInt64LE(huge, 24)),
    change("key with a zero byte", corrupt, "zero byte", (h) => void h.bytes.writeUInt8(0, h.find("general.name") + 3)),
    change("duplicate key", corrupt, "twice", insert("general.name", "uint32", uint32(1))),
    change(
      "unknown value type",
      corrupt,
      "unknown type 77",
      (h) => void h.bytes.writeUInt32LE(77, h.value("general.name")),
    ),
    change(
      "array of arrays",
      corrupt,
      "array of arrays",
      insert("a.b", "array", Buffer.concat([uint32(9), uint64(1n)])),
    ),
    change(
      "endless array",
      "gguf_truncated",
      "a.b",
      insert("a.b", "array", Buffer.concat([uint32(10), uint64(1n << 60n)])),
    ),
    change("endless string", "gguf_truncated", "a.b", insert("a.b", "string", uint64(huge))),
    change("alignment of a wrong type", corrupt, "uint32", insert("general.alignment", "uint64", uint64(32n))),
    change("alignment 0", corrupt, "power of two", insert("general.alignment", "uint32", uint32(0))),
    change("alignment 24", corrupt, "power of two", insert("general.alignment", "uint32", uint32(24))),
    change("alignment 2 GiB", corrupt, "power of two", insert("general.alignment", "uint32", uint32(2 ** 31))),
    change(
      "alignment that kernels cannot use",
      corrupt,
      "power of two",
      insert("general.alignment", "uint32", uint32(16)),
    ),
    change(
      "norms of numbers that are no weights",
      corrupt,
      "no type of weights",
      (h) => void h.bytes.writeUInt32LE(26, h.tensor("output_norm.weight") + 12),
    ),
    change("no layers", corrupt, "block_count", set32("qwen3.block_count", 0)),
    change("too many layers", corrupt, "block_count", set32("qwen3.block_count", 513)),
    change(
      "layers of a wrong type",
      corrupt,
      "uint32",
      (h) => void h.bytes.writeUInt32LE(6, h.value("qwen3.block_count")),
    ),
    change("heads that do not divide", corrupt, "head_count_kv", set32("qwen3.attention.head_count_kv", 4)),
    change("heads of no size", corrupt, "key_length", set32("qwen3.attention.key_length", 0)),
    change("values of another size", corrupt, "value_length", set32("qwen3.attention.value_length", 16)),
    change(
      "part of a head rotated",
      corrupt,
      "dimension_count",
      insert("qwen3.rope.dimension_count", "uint32", uint32(16)),
    ),
    change("experts of none", corrupt, "expert_used_count", insert("qwen3.expert_used_count", "uint32", uint32(8))),
    change("experts beyond number", corrupt, "expert_count", insert("qwen3.expert_count", "uint32", uint32(99999))),
    change(
      "unknown scaling",
      corrupt,
      "rope.scaling.type",
      insert("qwen3.rope.scaling.type", "string", Buffer.concat([uint64(4n), Buffer.from("evil")])),
    ),
    change(
      "negative epsilon",
      corrupt,
      "epsilon",
      (h) => void h.bytes.writeFloatLE(-1, h.value("qwen3.attention.layer_norm_rms_epsilon") + 4),
    ),
    change(
      "frequency that is no number",
      corrupt,
      "freq_base",
      (h) => void h.bytes.writeFloatLE(Number.NaN, h.value("qwen3.rope.freq_base") + 4),
    ),
    change(
      "tokens of a wrong type",
      corrupt,
      "tokenizer.ggml.token_type",
      (h) => void h.bytes.writeUInt32LE(6, h.value("tokenizer.ggml.token_type") + 4),
    ),
    change("the same token twice", corrupt, "twice", sameToken),
    change(
      "no dimensions",
      corrupt,
      "0 dimensions",
      (h) => void h.bytes.writeUInt32LE(0, h.tensor("output_norm.weight")),
    ),
    change(
      "five dimensions",
      corrupt,
      "5 dimensions",
      (h) => void h.bytes.writeUInt32LE(5, h.tensor("output_norm.weight")),
    ),
    change(
      "a dimension of 0",
      corrupt,
      "dimension is 0",
      (h) => void h.bytes.writeBigUInt64LE(0n, h.tensor("output_norm.weight") + 4),
    ),
    change(
      "dimensions that overflow",
      corrupt,
      "more data",
      (h) => void h.bytes.writeBigUInt64LE(1n << 40n, h.tensor("token_embd.weight") + 12),
    ),
    change(
      "rows of half a block",
      corrupt,
      "multiple",
      (h) => void h.bytes.writeBigUInt64LE(48n, h.tensor("token_embd.weight") + 4),
    ),
    change(
      "removed tensor type",
      corrupt,
      "unknown type 4",
      (h) => void h.bytes.writeUInt32LE(4, h.tensor("output_norm.weight") + 12),
    ),
    change(
      "unknown tensor type",
      corrupt,
      "unknown type 999",
      (h) => void h.bytes.writeUInt32LE(999, h.tensor("output_norm.weight") + 12),
    ),
    change(
      "overlapping tensors",
      corrupt,
      "was expected",
      (h) => void h.bytes.writeBigUInt64LE(0n, h.tensor("output_norm.weight") + 16),
    ),
    change(
      "a tensor outside the file",
      corrupt,
      "was expected",
      (h) => void h.bytes.writeBigUInt64LE(1n << 50n, h.tensor("output_norm.weight") + 16),
    ),
    change(
      "the same tensor twice",
      corrupt,
      "twice",
      (h) => void h.bytes.write("blk.0.attn_k.weight", h.find("blk.1.attn_k.weight")),
    ),
    change(
      "an adapter",
      "gguf_foreign",
      "'adapter'",
      insert("general.type", "string", Buffer.concat([uint64(7n), Buffer.from("adapter")])),
    ),
  ];
}

/** The first two tokens of one length that differ become the same. */
function sameToken(h: Header): undefined {
  let at = h.value("tokenizer.ggml.tokens") + 16;
  const seen = new Map<number, number>();
  for (;;) {
    const length = Number(h.bytes.readBigUInt64LE(at));
    const other = seen.get(length);
    if (other !== undefined) {
      h.bytes.copy(h.bytes, at + 8, other, other + length);
      return;
    }
    seen.set(length, at + 8);
    at += 8 + length;
  }
}

/** Copies with a few random bytes changed in what describes model and tensors, and some cut short. */
export function* randomDamage(count: number, seed: number): Generator<Damage> {
  const random = randomSource(seed);
  const pick = (most: number) => Math.floor(random() * most);
  const { bytes: whole } = new Header();
  const header = new Header();
  const vocabulary = header.find("tokenizer.ggml.tokens");
  const tensors = header.find("token_embd.weight") - 8;
  const end = header.tensor("blk.4.ffn_down.weight") + 64;
  for (let i = 0; i < count; i++) {
    const bytes = Buffer.from(whole);
    for (let flips = 1 + pick(3); flips > 0; flips--) {
      const region = pick(8);
      const at = region < 3 ? pick(vocabulary) : region < 7 ? tensors + pick(end - tensors) : pick(end);
      if (pick(2) === 0) bytes[at] = (bytes[at] ?? 0) ^ (1 << pick(8));
      else bytes[at] = [0, 1, 127, 128, 255][pick(5)] ?? 0;
    }
    yield { name: `random ${i}`, bytes: pick(20) === 0 ? bytes.subarray(0, pick(bytes.length)) : bytes };
  }
}

/** Copies in which one number of the metadata, or the type of one tensor of a layer, is another. */
export function* systematicDamage(): Generator<Damage> {
  const header = new Header();
  const numbers = [...header.bytes.toString("latin1").matchAll(/qwen3\.[a-z_.]+|tokenizer\.ggml\.\w+_token_id/g)];
  for (const [key] of numbers) {
    for (const value of [0, 1, 3, 5, 33, 100, 513, 65535, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 0x7fc00000, 0xbf800000]) {
      const bytes = Buffer.from(header.bytes);
      bytes.writeUInt32LE(value, header.value(key) + 4);
      yield { name: `${key} ${value}`, bytes };
    }
  }
  for (const tensor of ["output_norm.weight", "blk.4.attn_k_norm.weight", "blk.4.ffn_down.weight"]) {
    for (let type = 0; type < 45; type++) {
      const bytes = Buffer.from(header.bytes);
      const at = header.tensor(tensor);
      bytes.writeUInt32LE(type, at + 4 + 8 * bytes.readUInt32LE(at));
      yield { name: `${tensor} ${type}`, bytes };
    }
  }
}
