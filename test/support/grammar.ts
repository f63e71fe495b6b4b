export { qwen3Pieces } from "../models/qwen3-pieces.js";

import { type GrammarError, type GrammarVocabulary, loadTestAddon, type ParsedGrammar } from "./test-addon.js";

const addon = loadTestAddon();

/** A grammar that must be accepted. */
export function grammar(text: string): ParsedGrammar {
  const parsed = addon.grammar(text);
  if (parsed.error) throw new Error(`${parsed.error.message} (${parsed.error.line}:${parsed.error.column})\n${text}`);
  return parsed;
}

/** What a grammar is refused for, if it is. */
export function refusal(text: string): GrammarError | undefined {
  return addon.grammar(text).error;
}

/** Is `text` a whole text of the grammar? A string is taken as UTF-8. */
export function matches(parsed: ParsedGrammar, text: string | Buffer): boolean {
  const state = parsed.start();
  return state.acceptBytes(Buffer.from(text)) && state.canEnd();
}

export function vocabulary(pieces: Buffer[]): GrammarVocabulary {
  let end = 0;
  const ends = Uint32Array.from(pieces, (piece) => {
    end += piece.length;
    return end;
  });
  return addon.grammarVocabulary(Buffer.concat(pieces), ends);
}

/** The tokens of a mask that could be made. */
export const ids = (mask: Uint8Array | null): number[] => {
  if (mask === null) throw new Error("the grammar is too ambiguous for a mask");
  const found: number[] = [];
  for (let id = 0; id < mask.length * 8; ++id) if (((mask[id >> 3] as number) >> (id & 7)) & 1) found.push(id);
  return found;
};
