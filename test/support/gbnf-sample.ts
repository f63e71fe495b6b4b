import type { Matcher } from "./gbnf-matcher.js";

/** Random numbers in [0, 1), the same for the same seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Letters tried inside negated classes and wide ranges: awkward ones among them. */
const interesting = [...'aZ09 _-/."\\bfnrtu{}[],:é😀\u2028\u007f'].map((char) => char.codePointAt(0) ?? 0);
const closers = [...'"}]'].map((char) => char.codePointAt(0) ?? 0);

/**
 * Walks the grammar at random, as a model with random weights would: one code point at a time out of those allowed.
 * After `length` code points it leans towards what closes a value. Undefined when no end was found in time.
 */
export function sample(matcher: Matcher, next: () => number, length: number): string | undefined {
  matcher.reset();
  let out = "";
  for (let i = 0; i < length + 400; i++) {
    const late = i >= length;
    if (matcher.complete && (!matcher.open || late || next() < 0.3)) return out;
    const classes = matcher.next();
    const allowed = (code: number): boolean =>
      classes.some(({ ranges, negated }) => ranges.some(([from, to]) => from <= code && code <= to) !== negated);
    let code = late ? closers.find(allowed) : undefined;
    if (code === undefined) {
      const pick = classes[Math.floor(next() * classes.length)];
      const range = pick?.ranges[Math.floor(next() * pick.ranges.length)];
      if (pick === undefined) return undefined;
      const [from, to] = range ?? [0, 0];
      code = pick.negated
        ? interesting[Math.floor(next() * interesting.length)]
        : from + Math.floor(next() * Math.min(to - from + 1, 200));
    }
    if (code === undefined || !allowed(code) || (code >= 0xd800 && code <= 0xdfff)) continue;
    matcher.push(code);
    out += String.fromCodePoint(code);
  }
  return matcher.complete ? out : undefined;
}
