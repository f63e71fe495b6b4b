/**
 * Grammar expressions: built first, pruned of what can never match, then printed as GBNF. Rules refer to each other by
 * name, so recursion needs no special care.
 */
export type Expr =
  | { kind: "never" }
  | { kind: "text"; text: string }
  | { kind: "chars"; ranges: readonly Range[]; negated: boolean }
  | { kind: "seq"; items: readonly Expr[] }
  | { kind: "alt"; items: readonly Expr[] }
  | { kind: "repeat"; item: Expr; min: number; max: number }
  | { kind: "rule"; name: string };

/** Code points, both ends included. */
export type Range = readonly [number, number];

export const never: Expr = { kind: "never" };
export const empty: Expr = { kind: "seq", items: [] };

export function text(value: string): Expr {
  return value === "" ? empty : { kind: "text", text: value };
}

export function chars(ranges: readonly Range[], negated = false): Expr {
  return ranges.length === 0 && !negated ? never : { kind: "chars", ranges, negated };
}

export function rule(name: string): Expr {
  return { kind: "rule", name };
}

export function seq(...items: Expr[]): Expr {
  const flat: Expr[] = [];
  for (const item of items) {
    if (item.kind === "never") return never;
    if (item.kind === "seq") flat.push(...item.items);
    else flat.push(item);
  }
  // Neighbouring literals become one: shorter grammar, fewer rules to step through.
  const merged: Expr[] = [];
  for (const item of flat) {
    const last = merged.at(-1);
    if (item.kind === "text" && last?.kind === "text") merged[merged.length - 1] = text(last.text + item.text);
    else merged.push(item);
  }
  return merged.length === 1 && merged[0] !== undefined ? merged[0] : { kind: "seq", items: merged };
}

export function alt(...items: Expr[]): Expr {
  const flat: Expr[] = [];
  for (const item of items) {
    if (item.kind === "never") continue;
    if (item.kind === "alt") for (const inner of item.items) flat.push(inner);
    else flat.push(item);
  }
  if (flat.length === 0) return never;
  return flat.length === 1 && flat[0] !== undefined ? flat[0] : { kind: "alt", items: flat };
}

/** The largest count that our grammar engine takes; larger ones are counted in blocks of it. */
const block = 100_000;

function exactly(item: Expr, count: number): Expr {
  if (count <= block) return repeat(item, count, count);
  const blocks = Math.floor(count / block);
  return seq(repeat(repeat(item, block, block), blocks, blocks), exactly(item, count % block));
}

function upTo(item: Expr, count: number): Expr {
  if (count <= block) return repeat(item, 0, count);
  const blocks = Math.floor(count / block);
  const fewer = seq(repeat(repeat(item, block, block), 0, blocks - 1), repeat(item, 0, block - 1));
  return alt(fewer, seq(exactly(item, blocks * block), repeat(item, 0, count % block)));
}

/** `max` may be Infinity. */
export function repeat(item: Expr, min: number, max: number): Expr {
  if (max < min) return never;
  if (max === 0) return empty;
  if (item.kind === "never") return min === 0 ? empty : never;
  if (min === 1 && max === 1) return item;
  const bounded = max !== Number.POSITIVE_INFINITY;
  if (bounded && max > block) return seq(exactly(item, min), upTo(item, max - min));
  if (min > block) return seq(exactly(item, min), repeat(item, 0, max));
  return { kind: "repeat", item, min, max };
}

export const optional = (item: Expr): Expr => repeat(item, 0, 1);

/** The rules of one grammar, by name, in the order they were added. */
export class Rules {
  readonly map = new Map<string, Expr>();
  private counts = new Map<string, number>();

  /** A free rule name beginning with `stem`, which must be made of [a-z0-9-]. */
  fresh(stem: string): string {
    const n = this.counts.get(stem) ?? 0;
    this.counts.set(stem, n + 1);
    return `${stem}-${n}`;
  }

  set(name: string, expr: Expr): Expr {
    this.map.set(name, expr);
    return rule(name);
  }

  has(name: string): boolean {
    return this.map.has(name);
  }
}
