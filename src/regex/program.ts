import { type Assertion, type Node, parseRegex, RegexError } from "./parse.js";

/** One instruction; a thread of the machine is at one of them. `next` and `other` are indices. */
export type Instruction =
  | { op: "char"; matches: (codePoint: number) => boolean; next: number }
  | { op: "split"; next: number; other: number }
  | { op: "assert"; assertion: Assertion; next: number }
  | { op: "match" };

export interface Program {
  readonly instructions: readonly Instruction[];
  readonly start: number;
}

const mostInstructions = 20_000;

/** @throws {RegexError} the pattern is wrong, or too large when its repetitions are written out. */
export function compileRegex(pattern: string): Program {
  const compiler = new Compiler();
  const match = compiler.add({ op: "match" });
  const start = compiler.compile(parseRegex(pattern), match);
  return { instructions: compiler.instructions, start };
}

/** Thompson's construction, from the end to the beginning: each node is compiled with the place where it goes on. */
class Compiler {
  readonly instructions: Instruction[] = [];

  add(instruction: Instruction): number {
    if (this.instructions.length >= mostInstructions) throw new RegexError("its repetitions make it too large", 0);
    return this.instructions.push(instruction) - 1;
  }

  compile(node: Node, next: number): number {
    switch (node.kind) {
      case "empty":
        return next;
      case "char":
        return this.add({ op: "char", matches: node.matches, next });
      case "assert":
        return this.add({ op: "assert", assertion: node.assertion, next });
      case "sequence":
        return node.nodes.reduceRight((after, part) => this.compile(part, after), next);
      case "choice":
        return node.nodes
          .map((part) => this.compile(part, next))
          .reduceRight((other, first) => this.add({ op: "split", next: first, other }));
      case "repeat":
        return this.#repeat(node, next);
    }
  }

  #repeat({ node, least, most, lazy }: Extract<Node, { kind: "repeat" }>, next: number): number {
    let at = next;
    if (most === Infinity) {
      // The split is needed before what it goes back to is known.
      const split: Extract<Instruction, { op: "split" }> = { op: "split", next: 0, other: 0 };
      at = this.add(split);
      const body = this.compile(node, at);
      split.next = lazy ? next : body;
      split.other = lazy ? body : next;
      if (least > 0) at = body;
    } else {
      for (let i = least; i < most; i++) {
        const body = this.compile(node, at);
        at = this.add({ op: "split", next: lazy ? next : body, other: lazy ? body : next });
      }
    }
    const rest = most === Infinity ? Math.max(0, least - 1) : least;
    for (let i = 0; i < rest; i++) at = this.compile(node, at);
    return at;
  }
}
