import { readFileSync } from "node:fs";
import { byteAlphabet } from "./qwen3-pieces.js";

/** The bytes of nano's tokens; those of control tokens, which come last, are empty. */
export function nanoPieces(): Buffer[] {
  const text = readFileSync(new URL("nano/vocab.json", import.meta.url), "utf8");
  const { tokens, special } = JSON.parse(text) as { tokens: string[]; special: string[] };
  const bytes = byteAlphabet();
  return tokens.map((token) =>
    special.includes(token)
      ? Buffer.alloc(0)
      : Buffer.from(Array.from(token, (character) => bytes.get(character) as number)),
  );
}
