import type { Cursor } from "./cursor.js";

/** llama.cpp takes lengths of tokens for 32-bit numbers. */
const tokenBytes = 1 << 20;
/** Eight times the largest vocabulary known. */
export const mostTokens = 1 << 21;

/**
 * What is known of a vocabulary's texts once they went by. Nothing here is an object per token: that would be work for the
 * garbage collector, which holds up the JavaScript thread.
 */
export interface TokenTexts {
  /** Where in the file each text begins: at its length. */
  readonly offsets: Float64Array;
  /** 1 where it has the form `<0xNN>`. */
  readonly namesByte: Uint8Array;
  /** The first token whose text an earlier one has, as llama.cpp sees them; -1: none. */
  readonly duplicate: number;
}

/**
 * Reads `length` texts. Two are taken for the same when 64 bits of hash agree: of a vocabulary of 256 k different ones that
 * happens once in five hundred million.
 */
export async function readTokens(cursor: Cursor, length: number): Promise<TokenTexts> {
  if (length > mostTokens) throw cursor.error("gguf_corrupt", `more than ${mostTokens} tokens`);
  const offsets = new Float64Array(length);
  const namesByte = new Uint8Array(length);
  const seen = new HashSet(length);
  let duplicate = -1;
  for (let id = 0; id < length; id++) {
    if (!cursor.has(8)) await cursor.need(8);
    offsets[id] = cursor.position;
    const bytes = cursor.uint64();
    if (bytes > tokenBytes) throw cursor.error("gguf_corrupt", `token ${id} is longer than ${tokenBytes} bytes`);
    if (!cursor.has(bytes)) await cursor.need(bytes);
    if (bytes === 6 && isByteName(cursor.peek(6))) namesByte[id] = 1;
    // llama.cpp takes them for C strings: a zero byte ends them.
    const zero = cursor.window.subarray(cursor.offset, cursor.offset + bytes).indexOf(0);
    const text = zero < 0 ? bytes : zero;
    const isNew = text === 0 ? seen.add(...emptyName(id)) : seen.add(cursor.window, cursor.offset, text);
    if (!isNew && duplicate < 0) duplicate = id;
    cursor.skip(bytes);
  }
  return { offsets, namesByte, duplicate };
}

const isByteName = (text: string) => /^<0x[0-9A-Fa-f]{2}>$/.test(text);

/** llama.cpp gives empty tokens a name of its own. */
function emptyName(id: number): [Uint8Array, number, number] {
  const name = Buffer.from(`[EMPTY_${id}]`);
  return [name, 0, name.length];
}

/** Hashes of 64 bits in open addressing, of a fixed capacity: never rebuilt. */
class HashSet {
  readonly #low: Uint32Array;
  readonly #high: Uint32Array;
  readonly #mask: number;

  constructor(capacity: number) {
    const size = 2 ** Math.max(4, Math.ceil(Math.log2(capacity + 1)) + 1);
    this.#low = new Uint32Array(size);
    this.#high = new Uint32Array(size);
    this.#mask = size - 1;
  }

  /** False when it is there already. */
  add(bytes: Uint8Array, start: number, length: number): boolean {
    // FNV-1a, and the same with another prime and start.
    let low = 0x811c9dc5;
    let high = 0x9747b28c;
    for (let i = start; i < start + length; i++) {
      const byte = bytes[i] ?? 0;
      low = Math.imul(low ^ byte, 0x01000193);
      high = Math.imul(high ^ byte, 0x85ebca6b) ^ (high >>> 15);
    }
    low = (low ^ (length << 20)) >>> 0;
    high = (high | 1) >>> 0; // 0 marks a free place
    let at = (low ^ (low >>> 15)) & this.#mask;
    while (this.#high[at] !== 0) {
      if (this.#high[at] === high && this.#low[at] === low) return false;
      at = (at + 1) & this.#mask;
    }
    this.#low[at] = low;
    this.#high[at] = high;
    return true;
  }
}
