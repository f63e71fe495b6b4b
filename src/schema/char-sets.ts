import type { Range } from "./gbnf.js";

/** Sets of code points as sorted ranges that do not touch. */
const top = 0x10ffff;

export function normalise(ranges: readonly Range[]): Range[] {
  const out: Range[] = [];
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = out.at(-1);
    if (last !== undefined && from <= last[1] + 1) out[out.length - 1] = [last[0], Math.max(last[1], to)];
    else out.push([from, to]);
  }
  return out;
}

export function invert(ranges: readonly Range[]): Range[] {
  const out: Range[] = [];
  let at = 0;
  for (const [from, to] of normalise(ranges)) {
    if (from > at) out.push([at, from - 1]);
    at = to + 1;
  }
  if (at <= top) out.push([at, top]);
  return out;
}

export function intersect(a: readonly Range[], b: readonly Range[]): Range[] {
  const out: Range[] = [];
  let i = 0;
  let j = 0;
  for (let x = a[i], y = b[j]; x !== undefined && y !== undefined; x = a[i], y = b[j]) {
    const from = Math.max(x[0], y[0]);
    const to = Math.min(x[1], y[1]);
    if (from <= to) out.push([from, to]);
    if (x[1] < y[1]) i++;
    else j++;
  }
  return out;
}

export function difference(a: readonly Range[], b: readonly Range[]): Range[] {
  return intersect(a, invert(b));
}

export function contains(ranges: readonly Range[], code: number): boolean {
  let low = 0;
  let high = ranges.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const range = ranges[middle];
    if (range === undefined) return false;
    if (code < range[0]) high = middle - 1;
    else if (code > range[1]) low = middle + 1;
    else return true;
  }
  return false;
}

export const digits: readonly Range[] = [[48, 57]];
export const words: readonly Range[] = [
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
];
/** ECMA-262's white space and line terminators. */
export const spaces: readonly Range[] = normalise([
  [9, 13],
  [32, 32],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);
/** What `.` matches: anything but a line terminator. */
export const dot: readonly Range[] = invert([
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
]);
