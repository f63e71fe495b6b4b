import { closeSync, fstatSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";

/**
 * Writes and reads GGUF version 3, as far as fixtures need it. Format: the GGUF specification in ggml's documentation:
 * magic, version, counts, metadata, tensor infos, then tensor data, each tensor aligned to 32 bytes; little-endian.
 */
export type Metadata = Record<string, MetadataValue>;
export type MetadataValue =
  | { type: "uint16"; value: number }
  | { type: "int32"; value: number }
  | { type: "uint32"; value: number }
  | { type: "float32"; value: number }
  | { type: "bool"; value: boolean }
  | { type: "string"; value: string }
  | { type: "strings"; value: readonly string[] }
  | { type: "int32s"; value: Int32Array };

export type TensorType = "F32" | "F16" | "Q4_0" | "Q8_0";

/** ggml's type number, weights in a block, bytes of a block. */
export const tensorTypes: Record<TensorType, { id: number; block: number; bytes: number }> = {
  F32: { id: 0, block: 1, bytes: 4 },
  F16: { id: 1, block: 1, bytes: 2 },
  Q4_0: { id: 2, block: 32, bytes: 18 },
  Q8_0: { id: 8, block: 32, bytes: 34 },
};

export interface Tensor {
  name: string;
  /** ggml's order: the length of a row first. */
  shape: readonly number[];
  type: TensorType;
  /** Called with ascending offsets until all bytes are written; fills the whole of `target`. */
  fill(target: Uint8Array): void;
}

const alignment = 32;
const chunkBytes = 34 * 18 * 4096; // whole blocks of either quantised type
const valueTypes = { uint16: 2, uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 };
const align = (bytes: number) => Math.ceil(bytes / alignment) * alignment;

export function tensorBytes({ shape, type }: Pick<Tensor, "shape" | "type">): number {
  const { block, bytes } = tensorTypes[type];
  return (elements(shape) / block) * bytes;
}

const elements = (shape: readonly number[]): number => shape.reduce((product, n) => product * n, 1);

/**
 * Writes to a temporary file beside `path` and renames it, so that two processes may write the same model. Tensor data goes
 * out in pieces of 2.5 MB at most. A write that fails leaves nothing behind.
 */
export function writeGguf(path: string, metadata: Metadata, tensors: readonly Tensor[]): void {
  const temporary = `${path}.${process.pid}.part`;
  try {
    const file = openSync(temporary, "w");
    try {
      writeAll(file, metadata, tensors);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function writeAll(file: number, metadata: Metadata, tensors: readonly Tensor[]): void {
  let written = 0;
  const put = (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    written += bytes.length;
  };
  put(header(metadata, tensors));
  const buffer = new Uint8Array(chunkBytes);
  for (const tensor of tensors) {
    for (let left = tensorBytes(tensor); left > 0; ) {
      const part = buffer.subarray(0, Math.min(left, buffer.length));
      tensor.fill(part);
      put(part);
      left -= part.length;
    }
    put(new Uint8Array(align(written) - written));
  }
}

function header(metadata: Metadata, tensors: readonly Tensor[]): Uint8Array {
  const parts: Buffer[] = [];
  const uint32 = (value: number) => parts.push(Buffer.from(new Uint32Array([value]).buffer));
  const uint64 = (value: number) => parts.push(Buffer.from(new BigUint64Array([BigInt(value)]).buffer));
  const string = (value: string) => {
    const bytes = Buffer.from(value);
    uint64(bytes.length);
    parts.push(bytes);
  };
  parts.push(Buffer.from("GGUF"));
  uint32(3);
  uint64(tensors.length);
  uint64(Object.keys(metadata).length);
  for (const [key, { type, value }] of Object.entries(metadata)) {
    string(key);
    if (type === "strings") {
      uint32(valueTypes.array);
      uint32(valueTypes.string);
      uint64(value.length);
      value.forEach(string);
    } else if (type === "int32s") {
      uint32(valueTypes.array);
      uint32(valueTypes.int32);
      uint64(value.length);
      parts.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    } else {
      uint32(valueTypes[type]);
      if (type === "uint16") parts.push(Buffer.from(new Uint16Array([value]).buffer));
      if (type === "int32") parts.push(Buffer.from(new Int32Array([value]).buffer));
      if (type === "uint32") uint32(value);
      if (type === "float32") parts.push(Buffer.from(new Float32Array([value]).buffer));
      if (type === "bool") parts.push(Buffer.from([value ? 1 : 0]));
      if (type === "string") string(value);
    }
  }
  let offset = 0;
  for (const tensor of tensors) {
    string(tensor.name);
    uint32(tensor.shape.length);
    tensor.shape.forEach(uint64);
    uint32(tensorTypes[tensor.type].id);
    uint64(offset);
    offset = align(offset + tensorBytes(tensor));
  }
  const bytes = Buffer.concat(parts);
  return Buffer.concat([bytes, Buffer.alloc(align(bytes.length) - bytes.length)]);
}

export interface GgufSummary {
  version: number;
  /** Scalars and strings; of an array its length. */
  metadata: Record<string, number | string | boolean>;
  tensors: { name: string; shape: number[]; type: number; offset: number }[];
}

/** GGUF's value types that are numbers. */
const numbers: Record<number, { bytes: number; get(bytes: Buffer): number }> = {
  0: { bytes: 1, get: (bytes) => bytes.readUInt8() },
  1: { bytes: 1, get: (bytes) => bytes.readInt8() },
  2: { bytes: 2, get: (bytes) => bytes.readUInt16LE() },
  3: { bytes: 2, get: (bytes) => bytes.readInt16LE() },
  4: { bytes: 4, get: (bytes) => bytes.readUInt32LE() },
  5: { bytes: 4, get: (bytes) => bytes.readInt32LE() },
  6: { bytes: 4, get: (bytes) => bytes.readFloatLE() },
  10: { bytes: 8, get: (bytes) => Number(bytes.readBigUInt64LE()) },
  11: { bytes: 8, get: (bytes) => Number(bytes.readBigInt64LE()) },
  12: { bytes: 8, get: (bytes) => bytes.readDoubleLE() },
};

/** @throws {Error} when the file is no GGUF, or ends too early: in the header, or in the data of a tensor. */
export function readGguf(path: string): GgufSummary {
  const file = openSync(path, "r");
  const size = fstatSync(file).size;
  let position = 0;
  const take = (bytes: number): Buffer => {
    // Asked before the allocation: a length read from a damaged file may be anything.
    if (position + bytes > size) throw new Error(`${path}: ends at byte ${size}, inside its header`);
    const buffer = Buffer.alloc(bytes);
    readSync(file, buffer, 0, bytes, position);
    position += bytes;
    return buffer;
  };
  const uint32 = () => take(4).readUInt32LE();
  const uint64 = () => Number(take(8).readBigUInt64LE());
  const string = () => take(uint64()).toString();
  const number = (type: number): number => {
    const read = numbers[type];
    if (read === undefined) throw new Error(`${path}: unknown value type ${type}`);
    return read.get(take(read.bytes));
  };
  const value = (type: number): number | string | boolean => {
    if (type === valueTypes.string) return string();
    if (type === valueTypes.bool) return take(1)[0] === 1;
    if (type === valueTypes.array) {
      const element = uint32();
      const length = uint64();
      for (let i = 0; i < length; i++) value(element);
      return length;
    }
    return number(type);
  };
  try {
    if (take(4).toString() !== "GGUF") throw new Error(`${path}: not a GGUF file`);
    const version = uint32();
    const tensorCount = uint64();
    const metadataCount = uint64();
    const metadata: GgufSummary["metadata"] = {};
    for (let i = 0; i < metadataCount; i++) {
      const key = string();
      metadata[key] = value(uint32());
    }
    const tensors: GgufSummary["tensors"] = [];
    for (let i = 0; i < tensorCount; i++) {
      const name = string();
      const shape = Array.from({ length: uint32() }, uint64);
      tensors.push({ name, shape, type: uint32(), offset: uint64() });
    }
    const start = align(position);
    for (const { name, shape, type, offset } of tensors) {
      const known = Object.values(tensorTypes).find(({ id }) => id === type);
      const bytes = known ? (elements(shape) / known.block) * known.bytes : 0;
      if (start + offset + bytes > size) throw new Error(`${path}: ends at byte ${size}, inside tensor ${name}`);
    }
    return { version, metadata, tensors };
  } finally {
    closeSync(file);
  }
}
