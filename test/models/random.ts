import type { TensorType } from "./gguf.js";

/** xoshiro128** (Blackman, Vigna, 2018), seeded by splitmix32: deterministic, and fast enough for 400 MB. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number) {
    let state = seed >>> 0;
    const next = () => {
      state = (state + 0x9e3779b9) >>> 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      return (z ^ (z >>> 16)) >>> 0;
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    this.#d = next();
  }

  /** 0..2^32-1 */
  uint32(): number {
    const scrambled = Math.imul(this.#b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }
}

const half = (value: number): number => {
  // IEEE 754 binary16 of a positive normal number.
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0] ?? 0;
  return ((((bits >>> 23) - 112) << 10) | ((bits >>> 13) & 0x3ff)) & 0xffff;
};

/**
 * Random weights with a standard deviation of about `deviation`: uniform quantised values under one constant scale, so
 * that only the bytes of the values are drawn. F32 is for norms here, and all ones.
 */
export function randomFill(type: TensorType, deviation: number, seed: number): (target: Uint8Array) => void {
  if (type === "F32") return (target) => new Float32Array(target.buffer, target.byteOffset, target.length / 4).fill(1);
  if (type === "F16") throw new Error("F16 weights are not needed by any fixture");
  const random = new Random(seed);
  // Uniform over n values: standard deviation n / sqrt(12).
  const [blockBytes, scale] =
    type === "Q4_0" ? [18, half((deviation * Math.sqrt(12)) / 16)] : [34, half((deviation * Math.sqrt(12)) / 256)];
  return (target) => {
    const words = new Uint32Array(Math.ceil(target.length / 4));
    for (let i = 0; i < words.length; i++) words[i] = random.uint32();
    target.set(new Uint8Array(words.buffer, 0, target.length));
    for (let at = 0; at < target.length; at += blockBytes) {
      target[at] = scale & 0xff;
      target[at + 1] = scale >>> 8;
    }
  };
}
