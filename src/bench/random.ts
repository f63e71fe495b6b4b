/** Seeded random numbers: the same seed gives the same load, on every machine. */
export class Random {
  #state: number;

  /** @param seed any integer; taken modulo 2^32 */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Uniform in [0, 1), with 32 random bits. The generator is SplitMix32: a counter, and MurmurHash3's finaliser over it. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let bits = this.#state;
    bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
    return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
  }

  /** Uniform integer, both ends included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  /** Exponentially distributed with this mean: the time between two events of a Poisson process. */
  exponential(mean: number): number {
    return -Math.log(1 - this.next()) * mean;
  }

  /** A generator of its own for one purpose, so that one more number here moves nothing there. */
  fork(purpose: string): Random {
    let hash = this.#state;
    for (const character of purpose) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
    return new Random(hash);
  }
}
