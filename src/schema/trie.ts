import { invert } from "./char-sets.js";
import type { Dfa, DfaState } from "./explore.js";
import type { Range } from "./gbnf.js";

/** All strings but the given ones. Built directly, in time linear in their length: there may be thousands. */
export function trieComplement(values: readonly string[]): Dfa {
  interface Branch {
    children: Map<number, Branch>;
    final: boolean;
  }
  const root: Branch = { children: new Map(), final: false };
  for (const value of values) {
    // A lone surrogate cannot be written in UTF-8, and its escape is not let through.
    if (/[\ud800-\udfff]/u.test(value)) continue;
    let at = root;
    for (const char of value) {
      const code = char.codePointAt(0) ?? 0;
      let next = at.children.get(code);
      if (next === undefined) {
        next = { children: new Map(), final: false };
        at.children.set(code, next);
      }
      at = next;
    }
    at.final = true;
  }
  // State 1 is "already different": anything may follow.
  const states: DfaState[] = [];
  const free: DfaState = { edges: [{ ranges: withoutSurrogates([]), target: 1 }], label: "" };
  const queue: Branch[] = [root, { children: new Map(), final: false }];
  const numbers = new Map<Branch, number>([[root, 0]]);
  for (let i = 0; i < queue.length; i++) {
    const branch = queue[i];
    if (i === 1 || branch === undefined) {
      states.push(free);
      continue;
    }
    const edges: DfaState["edges"] = [];
    for (const [code, child] of branch.children) {
      numbers.set(child, queue.length);
      edges.push({ ranges: [[code, code]], target: queue.length });
      queue.push(child);
    }
    edges.push({ ranges: withoutSurrogates([...branch.children.keys()]), target: 1 });
    states.push({ edges, label: branch.final ? undefined : "" });
  }
  return { states };
}

/** All code points but surrogates and `codes`. */
function withoutSurrogates(codes: readonly number[]): Range[] {
  return invert([[0xd800, 0xdfff], ...codes.map((code): Range => [code, code])]);
}
