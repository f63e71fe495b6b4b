import { type Context, canonical } from "./context.js";
import { isEmpty } from "./emptiness.js";
import { type Place, SchemaError } from "./error.js";
import { kindOf, propertyNode } from "./match.js";
import { type Alternative, kinds } from "./types.js";

/** What can be told about a choice at a glance, to keep many choices apart without comparing each pair in full. */
interface Outline {
  kinds: number;
  /** All values, when they can be listed. */
  values: ReadonlySet<string> | undefined;
  /** Required properties with listed values: what usually tells one object from another. */
  tags: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Tells which of several choices have values in common. */
export class Overlaps {
  private readonly outlines: readonly Outline[];
  private readonly allApart: boolean;
  private readonly known = new Map<number, boolean>();

  constructor(
    private readonly context: Context,
    private readonly parts: readonly (readonly Alternative[])[],
    private readonly place: Place,
  ) {
    this.outlines = parts.map((part) => outline(context, part));
    this.allApart = allDifferent(this.outlines.map(({ values }) => values)) || this.taggedApart();
  }

  /** Whether one required property has other values in each choice: the usual discriminator. */
  private taggedApart(): boolean {
    const names = [...(this.outlines[0]?.tags.keys() ?? [])];
    return names.some((name) => allDifferent(this.outlines.map(({ tags }) => tags.get(name))));
  }

  /** False only when certainly no value satisfies both choices. */
  between(i: number, j: number): boolean {
    if (this.allApart) return false;
    const key = Math.min(i, j) * this.parts.length + Math.max(i, j);
    let found = this.known.get(key);
    if (found === undefined) {
      found = this.compare(i, j);
      this.known.set(key, found);
    }
    return found;
  }

  private compare(i: number, j: number): boolean {
    const [a, b] = [this.outlines[i], this.outlines[j]];
    if (a === undefined || b === undefined || (a.kinds & b.kinds) === 0) return false;
    if (a.values !== undefined && b.values !== undefined && apart(a.values, b.values)) return false;
    for (const [name, values] of a.tags) {
      const others = b.tags.get(name);
      if (others !== undefined && apart(values, others)) return false;
    }
    return !isEmpty(this.context, this.context.and(this.parts[i] ?? [], this.parts[j] ?? [], this.place));
  }
}

function allDifferent(sets: readonly (ReadonlySet<string> | undefined)[]): boolean {
  const all = new Set<string>();
  let size = 0;
  for (const set of sets) {
    if (set === undefined) return false;
    size += set.size;
    for (const value of set) all.add(value);
  }
  return size === all.size;
}

function apart(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  const [small, large] = a.size < b.size ? [a, b] : [b, a];
  for (const value of small) if (large.has(value)) return false;
  return true;
}

function outline(context: Context, part: readonly Alternative[]): Outline {
  const all = part.reduce(
    (mask, a) => mask | (a.values === undefined ? a.kinds : a.values.reduce<number>((m, v) => m | kindOf(v), 0)),
    0,
  );
  const [first] = part;
  const tags = new Map<string, ReadonlySet<string>>();
  if (all === kinds.object && first !== undefined && part.length === 1 && first.values === undefined) {
    for (const name of first.required) {
      const values = listed(() => context.expand(propertyNode(first, name)));
      if (values !== undefined) tags.set(name, values);
    }
  }
  return { kinds: all, values: listed(() => part), tags };
}

/** The values of a choice, when all of its alternatives list theirs. */
function listed(expand: () => readonly Alternative[]): ReadonlySet<string> | undefined {
  let alternatives: readonly Alternative[];
  try {
    alternatives = expand();
  } catch (error) {
    // Also a recursive schema that is being worked out just now.
    if (error instanceof SchemaError) return undefined;
    throw error;
  }
  const values = new Set<string>();
  for (const a of alternatives) {
    if (a.values === undefined) return undefined;
    for (const value of a.values) values.add(canonical(value));
  }
  return values;
}
