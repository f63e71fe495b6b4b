import { type Automaton, dead } from "./automaton.js";
import type { Decimal } from "./decimal.js";
import type { Bound } from "./types.js";

/** Automata over the spelling of numbers without exponent: "-", digits, ".", digits. */
const minus = 45;
const point = 46;
const zero = 48;

/** Each character behaves differently, so each is a span of its own. */
const bounds: readonly number[] = [45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58];

/** JSON's spelling; `whole` and `fraction` say whether values with and without a fractional part are wanted. */
export function spelling(whole: boolean, fraction: boolean): Automaton {
  // 0 start, 1 minus, 2 zero, 3 digits, 4 minus zero, 5 point, 6 fraction of zeros so far, 7 fraction.
  const step = (state: number, code: number): number => {
    if (code === minus) return state === 0 ? 1 : dead;
    if (code === point) return fraction && state >= 2 && state <= 4 ? 5 : dead;
    const nonZero = code !== zero;
    if (state === 0) return nonZero ? 3 : 2;
    // "-0" only as the beginning of a fraction.
    if (state === 1) return nonZero ? 3 : fraction ? 4 : dead;
    if (state === 3) return 3;
    if (state >= 5) return nonZero || state === 7 ? 7 : 6;
    return dead;
  };
  const accepts = (state: number): boolean =>
    state === 7 ? fraction : whole && (state === 2 || state === 3 || state === 6);
  return { start: 0, bounds, step, accepts };
}

/** At most `max` digits in all. */
export function digitLimit(max: number): Automaton {
  const step = (state: number, code: number): number => (code < zero ? state : state < max ? state + 1 : dead);
  return { start: 0, bounds, step, accepts: () => true };
}

export function atLeast(bound: Bound): Automaton {
  return compared(bound, (order) => order > 0 || (order === 0 && !bound.exclusive));
}

export function atMost(bound: Bound): Automaton {
  return compared(bound, (order) => order < 0 || (order === 0 && !bound.exclusive));
}

type Comparison =
  | { phase: "whole"; negative: boolean; length: number; order: number }
  | { phase: "fraction"; negative: boolean; at: number }
  | { phase: "decided"; negative: boolean; order: number };

/**
 * Whether numbers just inside the bound may round onto it: those that come near from below in magnitude (2.99… < 3).
 * From above, it is enough that the digit that tells them apart comes early; `compared` sees to that.
 */
export function roundsOntoBound(bound: Bound | undefined, side: "lower" | "upper"): boolean {
  if (bound === undefined || !bound.exclusive) return false;
  return side === "lower" ? bound.value.digits < 0n : bound.value.digits > 0n;
}

/** Decimal digits that a double keeps apart. */
export const exactDigits = 15;

/**
 * Compares with the bound's value digit by digit; `wanted` gets the sign of the difference. Under an exclusive bound, a
 * number that is the same in all digits that a double keeps apart is taken to be equal, and so is not let through.
 */
function compared(bound: Bound, wanted: (order: number) => boolean): Automaton {
  const { value } = bound;
  const limit = bound.exclusive ? exactDigits : Number.POSITIVE_INFINITY;
  const positive = value.digits >= 0n;
  const all = (positive ? value.digits : -value.digits).toString().padStart(value.scale + 1, "0");
  const whole = all.slice(0, all.length - value.scale);
  const fraction = all.slice(all.length - value.scale);
  const states = new Interned<Comparison>();

  const step = (state: Comparison, code: number): Comparison | undefined => {
    if (code === minus) {
      return state.phase === "whole" && state.length === 0 ? { ...state, negative: true } : undefined;
    }
    if (code === point) {
      if (state.phase !== "whole") return undefined;
      const order = wholeOrder(state);
      const { negative } = state;
      return order === 0 ? { phase: "fraction", negative, at: 0 } : { phase: "decided", negative, order };
    }
    if (state.phase === "decided") return state;
    const digit = code - zero;
    if (state.phase === "whole") {
      if (state.length > whole.length) return state;
      const length = state.length + 1;
      const order = state.order !== 0 ? state.order : Math.sign(digit - Number(whole[state.length] ?? 0));
      if (order === 0 && length > limit) return undefined;
      return { ...state, length, order: length > whole.length ? 1 : order };
    }
    const order = Math.sign(digit - Number(fraction[state.at] ?? 0));
    if (order !== 0) return { phase: "decided", negative: state.negative, order };
    if (whole.length + state.at >= limit) return undefined;
    return { ...state, at: bound.exclusive ? state.at + 1 : Math.min(state.at + 1, fraction.length) };
  };

  const wholeOrder = (state: { length: number; order: number }): number => {
    if (state.length !== whole.length) return state.length < whole.length ? -1 : 1;
    return state.order;
  };

  /** The order of the magnitudes, were the number to end here. */
  const finalOrder = (state: Comparison): number => {
    if (state.phase === "decided") return state.order;
    // The bound's last fractional digit is never 0: while some are left, it is the larger one.
    if (state.phase === "fraction") return state.at < fraction.length ? -1 : 0;
    const order = wholeOrder(state);
    return order === 0 && fraction.length > 0 ? -1 : order;
  };

  return {
    start: states.id({ phase: "whole", negative: false, length: 0, order: 0 }),
    bounds,
    step(id, code) {
      const state = states.get(id);
      const next = state === undefined ? undefined : step(state, code);
      return next === undefined ? dead : states.id(next);
    },
    accepts(id) {
      const state = states.get(id);
      if (state === undefined) return false;
      const order = finalOrder(state);
      if (positive && value.digits !== 0n) return wanted(state.negative ? -1 : order);
      if (state.negative) return wanted(order === 0 ? 0 : -order);
      return wanted(value.digits === 0n ? order : 1);
    },
  };
}

type Remainder = { remainder: number; decimals: number };

/** Accepts multiples of `of`: the remainder is carried along, digit by digit. */
export function multiple(of: Decimal): Automaton {
  const modulus = Number(of.digits);
  const states = new Interned<Remainder>();
  if (!Number.isSafeInteger(modulus * 10)) {
    // Far too many remainders for any grammar: an automaton that never comes to an end says so.
    return { start: 0, bounds, step: (state) => state + 1, accepts: () => false };
  }
  return {
    start: states.id({ remainder: 0, decimals: -1 }),
    bounds,
    step(id, code) {
      const state = states.get(id);
      if (state === undefined) return dead;
      if (code === minus) return id;
      if (code === point) return states.id({ ...state, decimals: 0 });
      const digit = code - zero;
      const { remainder, decimals } = state;
      if (decimals === of.scale) return digit === 0 ? id : dead;
      const next = (remainder * 10 + digit) % modulus;
      return states.id({ remainder: next, decimals: decimals < 0 ? -1 : decimals + 1 });
    },
    accepts(id) {
      const state = states.get(id);
      if (state === undefined) return false;
      let { remainder } = state;
      for (let i = Math.max(0, state.decimals); i < of.scale; i++) remainder = (remainder * 10) % modulus;
      return remainder === 0;
    },
  };
}

/** Numbers for states that are records. */
class Interned<T> {
  private readonly list: T[] = [];
  private readonly ids = new Map<string, number>();

  id(state: T): number {
    const key = JSON.stringify(Object.values(state as object));
    let id = this.ids.get(key);
    if (id === undefined) {
      id = this.list.push(state) - 1;
      this.ids.set(key, id);
    }
    return id;
  }

  get(id: number): T | undefined {
    return this.list[id];
  }
}
