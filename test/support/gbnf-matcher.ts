import { type Gbnf, type Grammar, parseGbnf } from "./gbnf-parse.js";

/**
 * A reference matcher: the set of all ways in which the text so far can have been read, each a linked list of what is
 * still to come. Equal lists are one object, so the set stays small; repetitions are counters.
 */
interface Rest {
  id: number;
  item: Gbnf;
  /** How many items of a sequence, or turns of a repetition, are done. */
  done: number;
  next: Rest | null;
}

export class Matcher {
  private readonly known = new Map<string, Rest>();
  private current: Rest[] = [];
  private ended = false;

  constructor(readonly grammar: Grammar) {
    this.reset();
  }

  reset(): void {
    const root = this.grammar.rules.get("root");
    this.known.clear();
    if (root) this.settle([this.rest(root, 0, null)]);
  }

  /** Whether the text so far is a whole one. */
  get complete(): boolean {
    return this.ended;
  }

  /** Whether more text is possible. */
  get open(): boolean {
    return this.current.length > 0;
  }

  /** The characters classes that may come next. */
  next(): { ranges: [number, number][]; negated: boolean }[] {
    return this.current.flatMap(({ item }) => (item.kind === "chars" ? [item] : []));
  }

  /** Takes one code point; false when it cannot come here. */
  push(code: number): boolean {
    const after: (Rest | null)[] = [];
    for (const { item, next } of this.current) {
      if (item.kind !== "chars") continue;
      if (item.ranges.some(([from, to]) => from <= code && code <= to) !== item.negated) after.push(next);
    }
    this.settle(after);
    return after.length > 0;
  }

  private rest(item: Gbnf, done: number, next: Rest | null): Rest {
    const key = `${item.id}:${done}:${next?.id ?? -1}`;
    let found = this.known.get(key);
    if (!found) {
      found = { id: this.known.size, item, done, next };
      this.known.set(key, found);
    }
    return found;
  }

  /** Follows everything that takes no character. */
  private settle(from: (Rest | null)[]): void {
    const seen = new Set<number>();
    const queue = [...from];
    this.current = [];
    this.ended = false;
    while (queue.length > 0) {
      const rest = queue.pop() ?? null;
      if (rest === null) {
        this.ended = true;
        continue;
      }
      if (seen.has(rest.id)) continue;
      seen.add(rest.id);
      const { item, done, next } = rest;
      if (item.kind === "chars") this.current.push(rest);
      else if (item.kind === "alt") for (const way of item.items) queue.push(this.rest(way, 0, next));
      else if (item.kind === "rule") {
        const body = this.grammar.rules.get(item.name);
        if (body) queue.push(this.rest(body, 0, next));
      } else if (item.kind === "seq") {
        const part = item.items[done];
        if (part === undefined) queue.push(next);
        else queue.push(this.rest(part, 0, done + 1 < item.items.length ? this.rest(item, done + 1, next) : next));
      } else {
        if (done >= item.min) queue.push(next);
        if (done < item.max) {
          const then = item.max === Infinity ? Math.min(done + 1, item.min) : done + 1;
          queue.push(this.rest(item.item, 0, this.rest(item, then, next)));
        }
      }
    }
  }
}

export function accepts(grammar: string | Matcher, text: string): boolean {
  const matcher = typeof grammar === "string" ? new Matcher(parseGbnf(grammar)) : grammar;
  matcher.reset();
  for (const char of text) if (!matcher.push(char.codePointAt(0) ?? 0)) return false;
  return matcher.complete;
}
