import type { FileHandle } from "node:fs/promises";
import { ModelFileError } from "../errors.js";

/**
 * Bytes that are read at once. Everything between two reads runs in one go on the JavaScript thread: this bounds it to a
 * fraction of a millisecond, also where the bytes are a vocabulary.
 */
const windowBytes = 32 * 1024;
/** A header with the largest vocabulary known is about 30 MB; llama.cpp holds all of it in memory. */
const headerBytes = 512 * 1024 * 1024;

/** Reads a file from its beginning, little-endian, in small pieces. */
export class Cursor {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #size: number;
  #buffer: Buffer = Buffer.alloc(0);
  #view = new DataView(new ArrayBuffer(0));
  /** Where in the file the buffer begins, and how far of it was taken. */
  #start = 0;
  #at = 0;
  /** What is being read, for errors. */
  where = "header";

  constructor(file: FileHandle, path: string, size: number, position = 0) {
    this.#start = position;
    this.#file = file;
    this.#path = path;
    this.#size = size;
  }

  /** From the beginning of the file. */
  get position(): number {
    return this.#start + this.#at;
  }

  get left(): number {
    return this.#size - this.position;
  }

  /** Whether so many bytes can be taken without a read. */
  has(bytes: number): boolean {
    return this.#at + bytes <= this.#buffer.length;
  }

  /**
   * Makes `bytes` ready to be taken.
   *
   * @throws {ModelFileError} the file ends before.
   */
  async need(bytes: number): Promise<void> {
    if (this.has(bytes)) return;
    this.expect(bytes);
    const begin = this.position;
    const length = Math.min(Math.max(bytes, windowBytes), this.#size - begin);
    const buffer = Buffer.allocUnsafeSlow(length);
    for (let filled = 0; filled < length; ) {
      const { bytesRead } = await this.#file.read(buffer, filled, length - filled, begin + filled);
      if (bytesRead === 0) throw this.#truncated();
      filled += bytesRead;
    }
    this.#buffer = buffer;
    this.#view = new DataView(buffer.buffer, buffer.byteOffset, length);
    this.#start = begin;
    this.#at = 0;
  }

  /** @throws {ModelFileError} so many bytes are not there, or they would make the header too large. */
  expect(bytes: number): void {
    if (bytes > this.left) throw this.#truncated();
    if (this.position + bytes > headerBytes) {
      throw this.error("gguf_corrupt", `it makes the header larger than ${headerBytes / 1024 / 1024} MiB`);
    }
  }

  skip(bytes: number): void {
    this.expect(bytes);
    this.#at += bytes;
  }

  /** The next bytes as latin1, which keeps each of them; they must be ready. */
  bytes(length: number): string {
    this.#at += length;
    return this.#buffer.toString("latin1", this.#at - length, this.#at);
  }

  /** As bytes(), without taking them. */
  peek(length: number): string {
    return this.#buffer.toString("latin1", this.#at, this.#at + length);
  }

  /** The bytes that are ready, and where in them the cursor is. */
  get window(): Uint8Array {
    return this.#buffer;
  }

  get offset(): number {
    return this.#at;
  }

  uint8(): number {
    this.#at += 1;
    return this.#view.getUint8(this.#at - 1);
  }

  uint32(): number {
    this.#at += 4;
    return this.#view.getUint32(this.#at - 4, true);
  }

  bigUint64(): bigint {
    this.#at += 8;
    return this.#view.getBigUint64(this.#at - 8, true);
  }

  /** A length or count; Infinity for those beyond 2^53, which are none. */
  uint64(): number {
    this.#at += 8;
    const high = this.#view.getUint32(this.#at - 4, true);
    return high < 0x20_0000
      ? high * 0x1_0000_0000 + this.#view.getUint32(this.#at - 8, true)
      : Number.POSITIVE_INFINITY;
  }

  int8 = () => (this.uint8() << 24) >> 24;
  int32 = () => this.uint32() | 0;
  uint16 = () => this.uint8() | (this.uint8() << 8);
  int16 = () => (this.uint16() << 16) >> 16;
  bigInt64 = () => BigInt.asIntN(64, this.bigUint64());

  float32(): number {
    this.#at += 4;
    return this.#view.getFloat32(this.#at - 4, true);
  }

  float64(): number {
    this.#at += 8;
    return this.#view.getFloat64(this.#at - 8, true);
  }

  error(code: ModelFileError["code"], reason: string): ModelFileError {
    return new ModelFileError(this.#path, code, this.where, reason);
  }

  #truncated(): ModelFileError {
    return this.error("gguf_truncated", `the file ends there, after ${this.#size} bytes`);
  }
}
