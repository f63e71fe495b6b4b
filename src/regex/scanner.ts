import { isWord } from "./parse.js";
import type { Instruction, Program } from "./program.js";

/** No character: before the text, after it. */
const none = -1;

/** What a scanner finds, in order: text that is in no match, and matches that are not empty. */
export interface Found {
  text(text: string): void;
  /** Returning true ends the search: what comes after is neither looked at nor reported. */
  match(text: string): boolean;
  /** A match of nothing; as match(). */
  empty?(): boolean;
}

/**
 * Finds the matches of a regular expression in a text that comes in pieces: exactly those that a search of the whole text
 * finds (the leftmost one, of these the one that the expression prefers, then on behind it), whatever the pieces.
 *
 * All threads of the expression run side by side over each character, so a search takes time in proportion to the text,
 * whatever the expression. Text is held back only while a match that contains it is possible.
 */
export class RegexScanner {
  readonly #instructions: readonly Instruction[];
  readonly #start: number;
  readonly #found: Found;
  /** From `#base` on; everything before it is reported. */
  #text = "";
  #base = 0;
  /** The next character to look at, and the one before it. */
  #at = 0;
  #previous = none;
  #threads = new ThreadList();
  #spare = new ThreadList();
  #match: { start: number; end: number } | undefined;
  #ended = false;
  /** Where each instruction was last entered, so that no two threads are at the same. */
  readonly #entered: Float64Array;
  #step = 0;

  constructor(program: Program, found: Found) {
    this.#instructions = program.instructions;
    this.#start = program.start;
    this.#found = found;
    this.#entered = new Float64Array(program.instructions.length);
  }

  push(text: string): void {
    if (this.#ended) return;
    this.#text += text;
    this.#run(false);
    this.#release();
  }

  finish(): void {
    if (this.#ended) return;
    this.#run(true);
    this.#release();
    this.#ended = true;
  }

  #run(final: boolean): void {
    for (;;) {
      const code = this.#codeAt(this.#at, final);
      // What a thread does at a place depends on the character behind it.
      if (code === undefined) return;
      this.#advance(code);
      if (this.#threads.length === 0 && this.#match !== undefined) {
        if (this.#reportMatch()) return;
        continue;
      }
      if (code === none) return;
      this.#previous = code;
      this.#at += code > 0xffff ? 2 : 1;
    }
  }

  /** undefined: not known yet. Of a pair of surrogates both are needed. */
  #codeAt(at: number, final: boolean): number | undefined {
    const code = this.#text.codePointAt(at - this.#base);
    if (code === undefined) return final ? none : undefined;
    const half = code >= 0xd800 && code < 0xdc00;
    if (half && !final && at - this.#base + 1 === this.#text.length) return undefined;
    return code;
  }

  /** All threads over one place and the character behind it, most preferred first. */
  #advance(code: number): void {
    const next = this.#spare;
    next.length = 0;
    this.#step++;
    let cut = false;
    for (let i = 0; i < this.#threads.length && !cut; i++) {
      cut = this.#enter(this.#threads.pc(i), this.#threads.start(i), code, next);
    }
    if (!cut && this.#match === undefined) this.#enter(this.#start, this.#at, code, next);
    this.#spare = this.#threads;
    this.#threads = next;
  }

  /** Follows a thread up to characters, and over the one that is there. True: it matched, and those behind it are off. */
  #enter(pc: number, start: number, code: number, next: ThreadList): boolean {
    const stack = [pc];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (this.#entered[at] === this.#step) continue;
      this.#entered[at] = this.#step;
      const instruction = this.#instructions[at] as Instruction;
      switch (instruction.op) {
        case "char":
          if (code !== none && instruction.matches(code)) next.push(instruction.next, start);
          break;
        case "split":
          stack.push(instruction.other, instruction.next);
          break;
        case "assert":
          if (this.#holds(instruction.assertion, code)) stack.push(instruction.next);
          break;
        case "match":
          this.#match = { start, end: this.#at };
          return true;
      }
    }
    return false;
  }

  #holds(assertion: Extract<Instruction, { op: "assert" }>["assertion"], code: number): boolean {
    const before = this.#previous;
    switch (assertion) {
      case "textStart":
        return this.#at === 0;
      case "textEnd":
        return code === none;
      case "lineStart":
        return before === none || before === 10;
      case "lineEnd":
        return code === none || code === 10;
      default:
        return (word(before) !== word(code)) === (assertion === "wordBoundary");
    }
  }

  /** The match is final: no thread that would be preferred is left. True: the search is over. */
  #reportMatch(): boolean {
    const { start, end } = this.#match as { start: number; end: number };
    this.#match = undefined;
    this.#threads.length = 0;
    const from = start - this.#base;
    const to = end - this.#base;
    if (from > 0) this.#found.text(this.#text.slice(0, from));
    if (from < to) {
      this.#previous = lastCode(this.#text, to);
      this.#ended = this.#found.match(this.#text.slice(from, to));
      this.#drop(to);
      this.#at = end;
      return this.#ended;
    }
    // An empty match takes nothing; the search goes on behind the character after it.
    this.#drop(from);
    if (this.#found.empty?.()) {
      this.#ended = true;
      return true;
    }
    const code = this.#text.codePointAt(0);
    if (code === undefined) {
      this.#ended = true;
      return true;
    }
    this.#previous = code;
    this.#at = end + (code > 0xffff ? 2 : 1);
    return false;
  }

  /** Reports what no match can contain any more. */
  #release(): void {
    if (this.#ended) return;
    let held = this.#match?.start ?? this.#at;
    for (let i = 0; i < this.#threads.length; i++) held = Math.min(held, this.#threads.start(i));
    const length = held - this.#base;
    if (length <= 0) return;
    this.#found.text(this.#text.slice(0, length));
    this.#drop(length);
  }

  #drop(length: number): void {
    this.#text = this.#text.slice(length);
    this.#base += length;
  }
}

const word = (code: number) => code !== none && isWord(code);

function lastCode(text: string, end: number): number {
  const low = text.charCodeAt(end - 1);
  const pair = low >= 0xdc00 && low < 0xe000 && end >= 2 ? text.codePointAt(end - 2) : undefined;
  return pair !== undefined && pair > 0xffff ? pair : low;
}

/** Threads in order of preference: where they are, and where their match began. */
class ThreadList {
  readonly #entries: number[] = [];
  length = 0;

  push(pc: number, start: number): void {
    this.#entries[2 * this.length] = pc;
    this.#entries[2 * this.length + 1] = start;
    this.length++;
  }

  pc(i: number): number {
    return this.#entries[2 * i] ?? 0;
  }

  start(i: number): number {
    return this.#entries[2 * i + 1] ?? 0;
  }
}
