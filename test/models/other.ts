import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findPackageRoot } from "../../src/package-root.js";
import { type Metadata, type Tensor, type TensorType, writeGguf } from "./gguf.js";
import { Random, randomFill } from "./random.js";

/**
 * Random weights in architectures whose memory is not one cell per token, under nano's vocabulary: what they say is noise,
 * but the same noise each time, and another one for another history.
 * - sliding-window: Gemma 2; every second layer sees 32 tokens back only.
 * - recurrent: Mamba; a state per sequence, which cannot be cut.
 * - hybrid: LFM2; short convolutions with a state, and a layer of attention.
 */
export type OtherPreset = "sliding-window" | "recurrent" | "hybrid";

/** Part of the cached files' names: a new number for every change of what is written. */
const generation = 1;
const width = 64;
const feedForward = 128;
const context = 4096;

/** Path of a generated model, made on first use and cached beside the others (qwen3.ts). */
export function ensureOther(preset: OtherPreset): string {
  const root = findPackageRoot()?.directory;
  if (root === undefined) throw new Error("no checkout of tokenloop around this module");
  const folder = process.env.TOKENLOOP_MODEL_CACHE ?? join(root, "node_modules", ".cache", "tokenloop-models");
  const path = join(folder, `${preset}-${generation}.gguf`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const nano = join(root, "test", "models", "nano");
  const vocabulary = JSON.parse(readFileSync(join(nano, "vocab.json"), "utf8")) as Vocabulary;
  const list = new TensorList(vocabulary.tokens.length);
  const architecture = architectures[preset](list);
  const metadata = {
    ...tokenizer(vocabulary, readFileSync(join(nano, "template.jinja"), "utf8")),
    "general.name": { type: "string", value: preset },
    "general.alignment": uint32(32),
    ...architecture,
  } satisfies Metadata;
  writeGguf(path, metadata, list.tensors);
  return path;
}

interface Vocabulary {
  tokens: string[];
  merges: string[];
  special: string[];
}

const uint32 = (value: number) => ({ type: "uint32", value }) as const;
const float32 = (value: number) => ({ type: "float32", value }) as const;

function tokenizer({ tokens, merges, special }: Vocabulary, template: string): Metadata {
  // llama.cpp's token types: 1 normal, 3 control, 4 user-defined.
  const control = new Set(special.slice(0, 3));
  const types = tokens.map((token) => (control.has(token) ? 3 : special.includes(token) ? 4 : 1));
  return {
    "tokenizer.ggml.model": { type: "string", value: "gpt2" },
    "tokenizer.ggml.pre": { type: "string", value: "qwen2" },
    "tokenizer.ggml.tokens": { type: "strings", value: tokens },
    "tokenizer.ggml.token_type": { type: "int32s", value: Int32Array.from(types) },
    "tokenizer.ggml.merges": { type: "strings", value: merges },
    "tokenizer.ggml.eos_token_id": uint32(tokens.indexOf("<|im_end|>")),
    "tokenizer.ggml.padding_token_id": uint32(tokens.indexOf("<|endoftext|>")),
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.chat_template": { type: "string", value: template },
  };
}

class TensorList {
  readonly tensors: Tensor[] = [];

  constructor(readonly vocabularySize: number) {}

  /** Random weights of matrices, ones of norms. */
  add(name: string, type: TensorType, ...shape: number[]): void {
    this.#push(name, type, shape, randomFill(type, 0.08, 500 + this.tensors.length));
  }

  /** F32 values around a mean. */
  values(name: string, mean: number, spread: number, ...shape: number[]): void {
    const random = new Random(900 + this.tensors.length);
    this.#push(name, "F32", shape, (target) => {
      const floats = new Float32Array(target.buffer, target.byteOffset, target.length / 4);
      for (let i = 0; i < floats.length; i++) floats[i] = mean + spread * (random.uint32() / 2 ** 31 - 1);
    });
  }

  feedForward(block: string): void {
    this.add(`${block}.ffn_norm.weight`, "F32", width);
    this.add(`${block}.ffn_gate.weight`, "Q8_0", width, feedForward);
    this.add(`${block}.ffn_up.weight`, "Q8_0", width, feedForward);
    this.add(`${block}.ffn_down.weight`, "Q8_0", feedForward, width);
  }

  attention(block: string): void {
    for (const name of ["attn_q", "attn_k", "attn_v", "attn_output"]) {
      this.add(`${block}.${name}.weight`, "Q8_0", width, width);
    }
  }

  #push(name: string, type: TensorType, shape: number[], fill: Tensor["fill"]): void {
    this.tensors.push({ name, type, shape, fill });
  }
}

/** The tensors that llama.cpp's loader of each architecture asks for, and the metadata. */
const architectures: Record<OtherPreset, (list: TensorList) => Metadata> = {
  "sliding-window"(list) {
    list.add("token_embd.weight", "Q8_0", width, list.vocabularySize);
    list.add("output_norm.weight", "F32", width);
    for (let layer = 0; layer < 4; layer++) {
      const block = `blk.${layer}`;
      list.add(`${block}.attn_norm.weight`, "F32", width);
      list.attention(block);
      list.add(`${block}.post_attention_norm.weight`, "F32", width);
      list.feedForward(block);
      list.add(`${block}.post_ffw_norm.weight`, "F32", width);
    }
    return {
      ...common("gemma2", 4),
      "gemma2.attention.sliding_window": uint32(32),
      "gemma2.attention.key_length": uint32(32),
      "gemma2.attention.value_length": uint32(32),
    };
  },
  recurrent(list) {
    const [inner, state, kernel, rank] = [2 * width, 16, 4, 32];
    list.add("token_embd.weight", "Q8_0", width, list.vocabularySize);
    list.add("output_norm.weight", "F32", width);
    for (let layer = 0; layer < 3; layer++) {
      const block = `blk.${layer}`;
      list.add(`${block}.attn_norm.weight`, "F32", width);
      list.add(`${block}.ssm_in.weight`, "Q8_0", width, 2 * inner);
      list.values(`${block}.ssm_conv1d.weight`, 0, 0.5, kernel, inner);
      list.values(`${block}.ssm_conv1d.bias`, 0, 0.1, inner);
      list.add(`${block}.ssm_x.weight`, "Q8_0", inner, rank + 2 * state);
      list.add(`${block}.ssm_dt.weight`, "Q8_0", rank, inner);
      list.values(`${block}.ssm_dt.bias`, -3, 0.5, inner);
      // Below 0: the state decays, slowly enough that all of a prompt counts.
      list.values(`${block}.ssm_a`, -0.5, 0.4, state, inner);
      list.values(`${block}.ssm_d`, 1, 0.2, inner);
      list.add(`${block}.ssm_out.weight`, "Q8_0", inner, width);
    }
    return {
      ...common("mamba", 3),
      "mamba.ssm.conv_kernel": uint32(kernel),
      "mamba.ssm.inner_size": uint32(inner),
      "mamba.ssm.state_size": uint32(state),
      "mamba.ssm.time_step_rank": uint32(rank),
    };
  },
  hybrid(list) {
    // Attention in the second of three layers: the loader tells the kinds apart by the number of KV heads.
    const keyValueHeads = Int32Array.from([0, 2, 0]);
    list.add("token_embd.weight", "Q8_0", width, list.vocabularySize);
    list.add("token_embd_norm.weight", "F32", width);
    keyValueHeads.forEach((heads, layer) => {
      const block = `blk.${layer}`;
      list.feedForward(block);
      list.add(`${block}.attn_norm.weight`, "F32", width);
      if (heads > 0) {
        list.add(`${block}.attn_q_norm.weight`, "F32", 32);
        list.add(`${block}.attn_k_norm.weight`, "F32", 32);
        list.attention(block);
      } else {
        list.values(`${block}.shortconv.conv.weight`, 0, 0.6, 3, width);
        list.add(`${block}.shortconv.in_proj.weight`, "Q8_0", width, 3 * width);
        list.add(`${block}.shortconv.out_proj.weight`, "Q8_0", width, width);
      }
    });
    return {
      ...common("lfm2", 3),
      "lfm2.attention.head_count_kv": { type: "int32s", value: keyValueHeads },
      "lfm2.shortconv.l_cache": uint32(3),
    };
  },
};

function common(architecture: string, layers: number): Metadata {
  return {
    "general.architecture": { type: "string", value: architecture },
    [`${architecture}.block_count`]: uint32(layers),
    [`${architecture}.context_length`]: uint32(context),
    [`${architecture}.embedding_length`]: uint32(width),
    [`${architecture}.feed_forward_length`]: uint32(feedForward),
    [`${architecture}.attention.head_count`]: uint32(2),
    [`${architecture}.attention.head_count_kv`]: uint32(2),
    [`${architecture}.attention.layer_norm_rms_epsilon`]: float32(1e-6),
    [`${architecture}.rope.freq_base`]: float32(10_000),
  };
}
