import { readTokenTexts } from "./read.js";
import type { GgufFile, GgufScalar } from "./types.js";

/** What a model is, by its header. */
export interface ModelDescription {
  name: string | undefined;
  architecture: string;
  /** Weights, in all of its files. */
  parameters: number;
  /** llama.cpp's name of the file's quantisation, e.g. "Q4_K_M"; absent where the file does not say. */
  fileType: string | undefined;
  /** Bytes of all files. */
  fileBytes: number;
  files: number;
  trainingContext: number | undefined;
  layers: number | undefined;
  embeddingLength: number | undefined;
  heads: GgufScalar | undefined;
  keyValueHeads: GgufScalar | undefined;
  experts: number | undefined;
  slidingWindow: number | undefined;
  vocabulary: { model: string | undefined; pre: string | undefined; tokens: number };
  /** Role ("bos", "eos", …) to id and text. */
  specialTokens: Record<string, { id: number; text: string }>;
  chatTemplate: string | undefined;
  /** Number, weights and bytes of the tensors of each type, most bytes first. */
  tensors: { type: string; count: number; parameters: number; bytes: number }[];
}

/** llama.cpp's `llama_ftype`: how most of a file is quantised. */
const fileTypes: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(
    // biome-ignore format: a table
    {
      F32: 0, F16: 1, Q4_0: 2, Q4_1: 3, Q8_0: 7, Q5_0: 8, Q5_1: 9, Q2_K: 10, Q3_K_S: 11, Q3_K_M: 12, Q3_K_L: 13, Q4_K_S: 14,
      Q4_K_M: 15, Q5_K_S: 16, Q5_K_M: 17, Q6_K: 18, IQ2_XXS: 19, IQ2_XS: 20, Q2_K_S: 21, IQ3_XS: 22, IQ3_XXS: 23, IQ1_S: 24,
      IQ4_NL: 25, IQ3_S: 26, IQ3_M: 27, IQ2_S: 28, IQ2_M: 29, IQ4_XS: 30, IQ1_M: 31, BF16: 32, TQ1_0: 36, TQ2_0: 37, MXFP4_MOE: 38,
    },
  ).map(([name, number]) => [number, name]),
);

const roles = ["bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask", "fim_pre", "fim_suf", "fim_mid"];

/** @param files as `checkModelFile` gives them. */
export async function describeModel(files: readonly GgufFile[]): Promise<ModelDescription> {
  const [first] = files;
  if (first === undefined) throw new Error("a model has at least one file");
  const scalar = (key: string): GgufScalar | undefined => {
    const value = first.metadata.get(key)?.value;
    return typeof value === "object" ? undefined : value;
  };
  const text = (key: string) => stringOf(scalar(key));
  const number = (key: string) => numberOf(scalar(key));
  const architecture = text("general.architecture") ?? "";
  const fileType = number("general.file_type");
  const tensors = files.flatMap((file) => file.tensors);
  const tokens = first.metadata.get("tokenizer.ggml.tokens")?.value;
  const byType = new Map<string, { type: string; count: number; parameters: number; bytes: number }>();
  for (const { shape, type, bytes } of tensors) {
    const entry = byType.get(type.name) ?? { type: type.name, count: 0, parameters: 0, bytes: 0 };
    entry.count += 1;
    entry.parameters += shape.reduce((product, size) => product * size, 1);
    entry.bytes += bytes;
    byType.set(type.name, entry);
  }
  const types = [...byType.values()].sort((a, b) => b.bytes - a.bytes);
  return {
    name: text("general.name"),
    architecture,
    parameters: types.reduce((sum, { parameters }) => sum + parameters, 0),
    fileType: fileType === undefined ? undefined : fileTypes[fileType],
    fileBytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    files: files.length,
    trainingContext: number(`${architecture}.context_length`),
    layers: number(`${architecture}.block_count`),
    embeddingLength: number(`${architecture}.embedding_length`),
    heads: scalar(`${architecture}.attention.head_count`),
    keyValueHeads: scalar(`${architecture}.attention.head_count_kv`),
    experts: number(`${architecture}.expert_count`),
    slidingWindow: number(`${architecture}.attention.sliding_window`),
    vocabulary: {
      model: text("tokenizer.ggml.model"),
      pre: text("tokenizer.ggml.pre"),
      tokens: typeof tokens === "object" ? tokens.length : 0,
    },
    specialTokens: await specialTokens(first, number),
    chatTemplate: text("tokenizer.chat_template"),
    tensors: types,
  };
}

async function specialTokens(file: GgufFile, number: (key: string) => number | undefined) {
  const ids = new Map<string, number>();
  for (const role of roles) {
    const id = number(`tokenizer.ggml.${role}_token_id`);
    if (id !== undefined) ids.set(role === "seperator" ? "separator" : role, id);
  }
  const texts = await readTokenTexts(file, ids.values());
  const found: ModelDescription["specialTokens"] = {};
  for (const [role, id] of ids) {
    const text = texts.get(id);
    if (text !== undefined) found[role] = { id, text };
  }
  return found;
}

const stringOf = (value: GgufScalar | undefined) => (typeof value === "string" ? value : undefined);
const numberOf = (value: GgufScalar | undefined) => (typeof value === "number" ? value : undefined);
