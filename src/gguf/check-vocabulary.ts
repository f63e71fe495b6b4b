import type { Metadata } from "./check.js";

/** llama.cpp's number for tokens that stand for one byte. */
const byteToken = 6;

/**
 * The vocabulary: llama.cpp ends the process where two tokens have the same text, and trusts a byte token to be written
 * `<0xNN>`.
 */
export function checkVocabulary(metadata: Metadata): void {
  const listKey = "tokenizer.ggml.tokens";
  const model = metadata.text("tokenizer.ggml.model");
  if (model === "no_vocab" || model === "none") {
    throw metadata.error(
      "tokenizer.ggml.model",
      "gguf_foreign",
      "this model has no vocabulary and cannot generate text",
    );
  }
  const list = metadata.optionalArray(listKey, ["string"]);
  if (list?.tokens === undefined || list.length === 0) {
    throw metadata.error(listKey, "gguf_corrupt", "there are no tokens");
  }
  const types = metadata.optionalArray("tokenizer.ggml.token_type", ["int32"]);
  const scores = metadata.optionalArray("tokenizer.ggml.scores", ["float32", "int32"]);
  for (const [key, array] of [
    ["tokenizer.ggml.token_type", types],
    ["tokenizer.ggml.scores", scores],
  ] as const) {
    if (array !== undefined && array.length < list.length) {
      throw metadata.error(key, "gguf_corrupt", `it has ${array.length} elements for ${list.length} tokens`);
    }
  }
  metadata.optionalArray("tokenizer.ggml.merges", ["string"]);
  metadata.optionalArray("tokenizer.ggml.precompiled_charsmap", ["int8", "uint8"]);
  metadata.optionalText("tokenizer.ggml.pre");
  metadata.optionalText("tokenizer.chat_template");

  const { duplicate, namesByte } = list.tokens;
  if (duplicate >= 0) throw metadata.error(listKey, "gguf_corrupt", `the text of token ${duplicate} is there twice`);
  for (let id = 0; id < list.length; id++) {
    if (types?.values?.[id] === byteToken && namesByte[id] !== 1) {
      throw metadata.error(listKey, "gguf_corrupt", `token ${id} stands for a byte, but is not written <0xNN>`);
    }
  }
}
