import { type TensorType, tensorTypes } from "./gguf.js";

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

/** IEEE 754 binary16 of a positive number that is normal there, cut off rather than rounded. */
function half(value: number): number {
  if (!(value >= 2 ** -14 && value < 65536)) throw new RangeError(`${value} is no normal positive 16-bit float`);
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0] ?? 0;
  return (((bits >>> 23) - 112) << 10) | ((bits >>> 13) & 0x3ff);
}

/**
 * Fills consecutive pieces of a tensor, each of whole blocks, with random weights of a standard deviation of about
 * `deviation`: uniform quantised values under one constant scale, so that only the bytes of the values are drawn. F16 takes
 * a byte per weight too, through a table. F32 is for norms here, and all ones.
 * @throws {RangeError} when the scale for `deviation` does not fit a 16-bit float; 0.01 to 1000 does for every type.
 */
export function randomFill(type: TensorType, deviation: number, seed: number): (target: Uint8Array) => void {
  if (type === "F32") return (target) => new Float32Array(target.buffer, target.byteOffset, target.length / 4).fill(1);
  const random = new Random(seed);
  const draw = (count: number): Uint8Array => {
    const words = new Uint32Array(Math.ceil(count / 4));
    for (let i = 0; i < words.length; i++) words[i] = random.uint32();
    return new Uint8Array(words.buffer, 0, count);
  };
  // Uniform over n values: standard deviation n / sqrt(12).
  const scaleFor = (values: number) => (deviation * Math.sqrt(12)) / values;
  if (type === "F16") {
    const table = Uint16Array.from({ length: 256 }, (_, byte) => {
      const value = (byte - 127.5) * scaleFor(256);
      return half(Math.abs(value)) | (value < 0 ? 0x8000 : 0);
    });
    return (target) => {
      const halves = new Uint16Array(target.buffer, target.byteOffset, target.length / 2);
      const bytes = draw(halves.length);
      for (let i = 0; i < halves.length; i++) halves[i] = table[bytes[i] ?? 0] ?? 0;
    };
  }
  const blockBytes = tensorTypes[type].bytes;
  // Q4_0 holds -8 to 7: the mean of half a step, over many layers, drowns the prompt, and one token answers everything.
  // So -8 becomes 0, which leaves -7 to 7, whose squares' mean is 17.5. Q8_0's half a step in 256 does no harm.
  const centred = (nibble: number) => (nibble === 0 ? 8 : nibble);
  const pairs = Uint8Array.from({ length: 256 }, (_, byte) => centred(byte & 15) | (centred(byte >>> 4) << 4));
  const scale = half(type === "Q4_0" ? deviation / Math.sqrt(17.5) : scaleFor(256));
  return (target) => {
    target.set(draw(target.length));
    if (type === "Q4_0") for (let i = 0; i < target.length; i++) target[i] = pairs[target[i] ?? 0] ?? 0;
    for (let at = 0; at < target.length; at += blockBytes) {
      target[at] = scale & 0xff;
      target[at + 1] = scale >>> 8;
    }
  };
}
