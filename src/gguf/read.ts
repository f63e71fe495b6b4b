import { type FileHandle, open } from "node:fs/promises";
import { ModelFileError } from "../errors.js";
import { Cursor } from "./cursor.js";
import { type TensorType, tensorTypes } from "./tensor-types.js";
import { readTokens } from "./tokens.js";
import {
  type GgufArray,
  type GgufEntry,
  type GgufFile,
  type GgufScalar,
  type GgufTensor,
  type ValueType,
  valueTypes,
} from "./types.js";

/** More than any model has; llama.cpp compares each name with all before it. */
const mostEntries = 8192;
const mostTensors = 65536;
/** GGUF's own limit for keys, and ggml's for the names of tensors (with its final zero). */
const keyBytes = 65535;
const nameBytes = 63;
const mostDimensions = 4;
const defaultAlignment = 32;
/** llama.cpp maps files, and asserts that what it maps is aligned for its kernels. */
const leastAlignment = 32;
const mostAlignment = 65536;
/** Texts (chat templates, licences) up to this size are kept and may be looked at. */
const textBytes = 16 * 1024 * 1024;
/** Arrays up to this length are kept; of longer ones the two that the checks ask about, each in its own way. */
const keptElements = 1024;
const tokenList = "tokenizer.ggml.tokens";
const tokenTypes = "tokenizer.ggml.token_type";

/** Bytes of one value, of types that have a fixed size. */
const sizes: Partial<Record<ValueType, number>> = {
  uint8: 1,
  int8: 1,
  uint16: 2,
  int16: 2,
  uint32: 4,
  int32: 4,
  float32: 4,
  bool: 1,
  uint64: 8,
  int64: 8,
  float64: 8,
};

/**
 * Reads the header of a GGUF file (versions 2 and 3): metadata and tensor infos, never the tensors' data. Everything that
 * the file says about itself is checked before it is believed, as strictly as llama.cpp's own reader does, and bounded.
 * Format: the GGUF specification in ggml's documentation.
 *
 * Reads in pieces of 32 KiB, so that the JavaScript thread is never held up for long.
 *
 * @throws {ModelFileError} the file is damaged, hostile or no GGUF.
 */
export async function readGgufFile(path: string): Promise<GgufFile> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, "r");
    const { size } = await file.stat();
    return await read(new Cursor(file, path, size), path, size);
  } catch (error) {
    if (error instanceof ModelFileError) throw error;
    throw new ModelFileError(path, "gguf_unreadable", null, error instanceof Error ? error.message : String(error));
  } finally {
    await file?.close();
  }
}

async function read(cursor: Cursor, path: string, bytes: number): Promise<GgufFile> {
  const { version, tensorCount, entryCount } = await readHeader(cursor, bytes);
  const metadata = new Map<string, GgufEntry>();
  for (let i = 0; i < entryCount; i++) {
    cursor.where = `metadata entry ${i + 1} of ${entryCount}`;
    const key = await readName(cursor, "a key", keyBytes);
    cursor.where = `metadata key '${printable(key)}'`;
    if (metadata.has(key)) throw cursor.error("gguf_corrupt", "it is there twice");
    metadata.set(key, await readEntry(cursor, key));
  }
  const alignment = alignmentOf(cursor, metadata);
  const tensors = await readTensors(cursor, tensorCount, alignment, bytes);
  return { path, bytes, version, metadata, tensors };
}

/** The texts of some tokens, by id. Those that are not in the vocabulary are left out. */
export async function readTokenTexts(file: GgufFile, ids: Iterable<number>): Promise<Map<number, string>> {
  const texts = new Map<number, string>();
  const list = file.metadata.get(tokenList)?.value;
  const offsets = typeof list === "object" ? list.tokens?.offsets : undefined;
  const handle = await open(file.path, "r");
  try {
    for (const id of ids) {
      const offset = offsets?.[id];
      if (offset === undefined) continue;
      const cursor = new Cursor(handle, file.path, file.bytes, offset);
      texts.set(id, await readText(cursor));
    }
  } finally {
    await handle.close();
  }
  return texts;
}

async function readHeader(cursor: Cursor, bytes: number) {
  if (bytes < 4) throw cursor.error("gguf_foreign", `this is no GGUF file: it has ${bytes} bytes`);
  await cursor.need(4);
  const magic = cursor.bytes(4);
  if (magic !== "GGUF") {
    throw cursor.error("gguf_foreign", `this is no GGUF file: it begins with '${printable(magic)}', not 'GGUF'`);
  }
  await cursor.need(20);
  const version = cursor.uint32();
  if (version !== 0 && (version & 0xffff) === 0) {
    throw cursor.error("gguf_unsupported", "the file is big-endian, for machines of another kind");
  }
  if (version === 1)
    throw cursor.error("gguf_unsupported", "version 1 of GGUF is no longer supported: convert it anew");
  if (version !== 2 && version !== 3) {
    throw cursor.error("gguf_unsupported", `version ${version} of GGUF is not known; versions 2 and 3 are`);
  }
  const tensorCount = cursor.uint64();
  const entryCount = cursor.uint64();
  if (tensorCount > mostTensors) throw cursor.error("gguf_corrupt", `more than ${mostTensors} tensors`);
  if (entryCount > mostEntries) throw cursor.error("gguf_corrupt", `more than ${mostEntries} metadata entries`);
  return { version, tensorCount, entryCount };
}

/** A name in UTF-8, neither empty nor with a zero byte, at which C would end it. */
async function readName(cursor: Cursor, what: string, most: number): Promise<string> {
  await cursor.need(8);
  const length = cursor.uint64();
  if (length === 0) throw cursor.error("gguf_corrupt", `${what} is empty`);
  if (length > most) throw cursor.error("gguf_corrupt", `${what} is longer than ${most} bytes`);
  await cursor.need(length);
  const name = cursor.bytes(length);
  if (name.includes("\0")) throw cursor.error("gguf_corrupt", `${what} has a zero byte`);
  return utf8(name);
}

async function readEntry(cursor: Cursor, key: string): Promise<GgufEntry> {
  await cursor.need(4);
  const type = valueType(cursor, cursor.uint32());
  if (type !== "array") return { type, value: await readScalar(cursor, type) };
  await cursor.need(12);
  const element = valueType(cursor, cursor.uint32());
  if (element === "array") throw cursor.error("gguf_corrupt", "an array of arrays is not allowed");
  const length = cursor.uint64();
  return { type, value: await readArray(cursor, key, element, length) };
}

function valueType(cursor: Cursor, number: number): ValueType {
  const type = valueTypes[number];
  if (type === undefined) throw cursor.error("gguf_corrupt", `its value has the unknown type ${number}`);
  return type;
}

async function readScalar(cursor: Cursor, type: Exclude<ValueType, "array">): Promise<GgufScalar> {
  const size = sizes[type];
  if (size === undefined) return readText(cursor);
  await cursor.need(size);
  return takeNumber(cursor, type);
}

async function readText(cursor: Cursor): Promise<string> {
  await cursor.need(8);
  const length = cursor.uint64();
  cursor.expect(length);
  if (length > textBytes) throw cursor.error("gguf_corrupt", `its text is longer than ${textBytes / 1024 / 1024} MiB`);
  await cursor.need(length);
  return utf8(cursor.bytes(length));
}

/** A value of a fixed size, whose bytes are ready. */
function takeNumber(cursor: Cursor, type: ValueType): number | bigint | boolean {
  switch (type) {
    case "uint8":
      return cursor.uint8();
    case "int8":
      return cursor.int8();
    case "uint16":
      return cursor.uint16();
    case "int16":
      return cursor.int16();
    case "uint32":
      return cursor.uint32();
    case "int32":
      return cursor.int32();
    case "float32":
      return cursor.float32();
    case "float64":
      return cursor.float64();
    case "bool":
      return cursor.uint8() !== 0;
    case "uint64":
      return plain(cursor.bigUint64());
    default:
      return plain(cursor.bigInt64());
  }
}

const plain = (value: bigint) => (BigInt.asIntN(53, value) === value ? Number(value) : value);

async function readArray(
  cursor: Cursor,
  key: string,
  element: Exclude<ValueType, "array">,
  length: number,
): Promise<GgufArray> {
  const size = sizes[element];
  // A string takes at least the eight bytes of its length.
  cursor.expect(length * (size ?? 8));
  if (key === tokenList && element === "string") {
    return { element, length, values: undefined, tokens: await readTokens(cursor, length) };
  }
  if (key === tokenTypes && element === "int32") {
    return { element, length, values: await readIntegers(cursor, length) };
  }
  const kept = length <= keptElements;
  if (size !== undefined && !kept) {
    cursor.skip(length * size);
    return { element, length, values: undefined };
  }
  const values: GgufScalar[] = [];
  for (let i = 0; i < length; i++) {
    if (size !== undefined) {
      if (!cursor.has(size)) await cursor.need(size);
      values.push(takeNumber(cursor, element));
    } else if (kept) {
      values.push(await readText(cursor));
    } else {
      if (!cursor.has(8)) await cursor.need(8);
      cursor.skip(cursor.uint64());
    }
  }
  return { element, length, values: kept ? values : undefined };
}

async function readIntegers(cursor: Cursor, length: number): Promise<Int32Array> {
  const values = new Int32Array(length);
  for (let i = 0; i < length; i++) {
    if (!cursor.has(4)) await cursor.need(4);
    values[i] = cursor.int32();
  }
  return values;
}

function alignmentOf(cursor: Cursor, metadata: ReadonlyMap<string, GgufEntry>): number {
  const entry = metadata.get("general.alignment");
  if (entry === undefined) return defaultAlignment;
  cursor.where = "metadata key 'general.alignment'";
  const { type, value } = entry;
  if (type !== "uint32" || typeof value !== "number") {
    throw cursor.error("gguf_corrupt", `its type is ${type} and must be uint32`);
  }
  if (value < leastAlignment || value > mostAlignment || (value & (value - 1)) !== 0) {
    throw cursor.error("gguf_corrupt", `${value} is no power of two from ${leastAlignment} to ${mostAlignment}`);
  }
  return value;
}

async function readTensors(cursor: Cursor, count: number, alignment: number, bytes: number): Promise<GgufTensor[]> {
  const infos = new Map<string, { shape: number[]; type: TensorType; offset: number; bytes: number }>();
  const align = (position: number) => Math.ceil(position / alignment) * alignment;
  let expected = 0;
  for (let i = 0; i < count; i++) {
    cursor.where = `tensor ${i + 1} of ${count}`;
    const name = await readName(cursor, "its name", nameBytes);
    cursor.where = `tensor '${printable(name)}'`;
    if (infos.has(name)) throw cursor.error("gguf_corrupt", "it is there twice");
    const info = await readTensor(cursor, bytes);
    // As llama.cpp has it: each where the one before ends, so that none overlaps another.
    if (info.offset !== expected) {
      throw cursor.error("gguf_corrupt", `its data begins at ${info.offset}, where ${expected} was expected`);
    }
    expected = align(info.offset + info.bytes);
    infos.set(name, info);
  }
  const start = align(cursor.position);
  const tensors: GgufTensor[] = [];
  for (const [name, { shape, type, offset, bytes: size }] of infos) {
    cursor.where = `data of tensor '${printable(name)}'`;
    if (start + offset + size > bytes)
      throw cursor.error("gguf_truncated", `the file ends there, after ${bytes} bytes`);
    tensors.push({ name, shape, type, offset: start + offset, bytes: size });
  }
  return tensors;
}

async function readTensor(cursor: Cursor, fileBytes: number) {
  await cursor.need(4);
  const dimensions = cursor.uint32();
  if (dimensions < 1 || dimensions > mostDimensions) {
    throw cursor.error("gguf_corrupt", `it has ${dimensions} dimensions, not 1 to ${mostDimensions}`);
  }
  await cursor.need(8 * dimensions + 12);
  const shape = Array.from({ length: dimensions }, () => cursor.uint64());
  const number = cursor.uint32();
  const offset = cursor.uint64();
  const type = tensorTypes.get(number);
  if (type === undefined) throw cursor.error("gguf_corrupt", `its data has the unknown type ${number}`);
  // The data of a tensor is in the file: no shape may ask for more, which also keeps all products exact.
  let elements = 1;
  for (const size of shape) {
    if (size < 1) throw cursor.error("gguf_corrupt", "a dimension is 0");
    elements *= size;
    if ((elements / type.block) * type.bytes > fileBytes) {
      throw cursor.error("gguf_corrupt", `its shape ${shape.join(" × ")} asks for more data than the file has`);
    }
  }
  if ((shape[0] ?? 0) % type.block !== 0) {
    throw cursor.error("gguf_corrupt", `its rows of ${shape[0]} are no multiple of ${type.name}'s ${type.block}`);
  }
  return { shape, type, offset, bytes: (elements / type.block) * type.bytes };
}

/** Latin1 that holds bytes, as the text that they are in UTF-8. */
export function utf8(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}

/** For messages: short, and without characters that a terminal would obey. */
export function printable(text: string): string {
  return text.slice(0, 80).replace(/[^\x20-\x7e]/g, "?");
}
