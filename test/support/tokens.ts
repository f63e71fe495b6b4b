import { vocabulary } from "./grammar.js";
import type { GrammarVocabulary } from "./test-addon.js";

/** A model's tokens, and ways to cut a text into them. Tokens without text are never used. */
export class Tokens {
  readonly vocabulary: GrammarVocabulary;
  readonly #ids: Map<string, number>;
  readonly #longest: number;

  constructor(readonly pieces: Buffer[]) {
    this.vocabulary = vocabulary(pieces);
    this.#ids = new Map(pieces.flatMap((piece, id) => (piece.length > 0 ? [[piece.toString("latin1"), id]] : [])));
    this.#longest = pieces.reduce((longest, { length }) => Math.max(longest, length), 0);
  }

  piece(id: number): Buffer {
    return this.pieces[id] ?? Buffer.alloc(0);
  }

  /** The longest token that fits, again and again. */
  greedy(text: string): number[] {
    return this.#cut(text, (found) => found.at(-1));
  }

  /** Any tokens that fit. */
  random(text: string, next: () => number): number[] {
    return this.#cut(text, (found) => found[Math.floor(next() * found.length)]);
  }

  #cut(text: string, choose: (found: number[]) => number | undefined): number[] {
    const whole = Buffer.from(text).toString("latin1");
    const tokens: number[] = [];
    for (let at = 0; at < whole.length; ) {
      const found: number[] = [];
      for (let end = at + 1; end <= Math.min(whole.length, at + this.#longest); end++) {
        const id = this.#ids.get(whole.slice(at, end));
        if (id !== undefined) found.push(id);
      }
      const id = choose(found);
      if (id === undefined) throw new Error(`no token begins ${JSON.stringify(whole.slice(at, at + 8))}`);
      tokens.push(id);
      at += this.piece(id).length;
    }
    return tokens;
  }
}
