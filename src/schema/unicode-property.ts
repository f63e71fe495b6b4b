import type { Range } from "./gbnf.js";

/** Properties worked out so far; no more than this many are kept. */
const maxKept = 32;
const kept = new Map<string, readonly Range[]>();

/**
 * The code points with a Unicode property as `\p{…}` names it; undefined when there is no such property. The engine's
 * own tables answer: one search over all code points in order, whose matches are the ranges.
 */
export function unicodeProperty(name: string): readonly Range[] | undefined {
  // Nothing but a name may get into the expression below.
  if (!/^[A-Za-z_]{1,40}(?:=[A-Za-z_]{1,40})?$/.test(name)) return undefined;
  const known = kept.get(name);
  if (known !== undefined) return known;
  let search: RegExp;
  try {
    search = new RegExp(`\\p{${name}}+`, "gu");
  } catch {
    return undefined;
  }
  const ranges: Range[] = [];
  for (const [from, to] of [
    [0, 0xd7ff],
    [0xe000, 0x10ffff],
  ] as const) {
    for (const [run] of codePoints(from, to).matchAll(search)) {
      const first = run.codePointAt(0) ?? 0;
      ranges.push([first, lastOf(run)]);
    }
  }
  if (kept.size < maxKept) kept.set(name, ranges);
  return ranges;
}

/** The last code point of a run: two units when it is beyond the basic plane. */
function lastOf(run: string): number {
  const unit = run.charCodeAt(run.length - 1);
  const low = unit >= 0xdc00 && unit <= 0xdfff;
  return low ? (run.codePointAt(run.length - 2) ?? unit) : unit;
}

function codePoints(from: number, to: number): string {
  const parts: string[] = [];
  for (let at = from; at <= to; at += 4096) {
    const length = Math.min(4096, to - at + 1);
    parts.push(String.fromCodePoint(...Array.from({ length }, (_, i) => at + i)));
  }
  return parts.join("");
}
