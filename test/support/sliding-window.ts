import { type Tensor, type TensorType, writeGguf } from "../models/gguf.js";
import { randomFill } from "../models/random.js";

/**
 * Writes a small model of the Gemma 3 architecture: of its six layers five look back on a window of 512 tokens. Random
 * weights under a vocabulary of single letters: for what it takes, not for what it says.
 *
 * @param second writes half of the tensors to a file of this name: a model in two parts.
 */
export function writeSlidingWindowModel(path: string, second?: string): void {
  const layers = 6;
  const width = 256;
  const heads = 4;
  const headSize = 64;
  const feedForward = 512;
  const tokens = ["<eos>", ...Array.from({ length: 1023 }, (_, id) => `t${id}`)];
  const uint32 = (value: number) => ({ type: "uint32", value }) as const;
  const list: Tensor[] = [];
  const add = (name: string, type: TensorType, ...shape: number[]) =>
    list.push({ name: `${name}.weight`, type, shape, fill: randomFill(type, 0.02, list.length) });
  add("token_embd", "Q8_0", width, tokens.length);
  add("output_norm", "F32", width);
  for (let layer = 0; layer < layers; layer++) {
    const block = `blk.${layer}`;
    for (const norm of ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"]) {
      add(`${block}.${norm}`, "F32", width);
    }
    for (const norm of ["attn_q_norm", "attn_k_norm"]) add(`${block}.${norm}`, "F32", headSize);
    add(`${block}.attn_q`, "Q8_0", width, heads * headSize);
    add(`${block}.attn_k`, "Q8_0", width, headSize);
    add(`${block}.attn_v`, "Q8_0", width, headSize);
    add(`${block}.attn_output`, "Q8_0", heads * headSize, width);
    add(`${block}.ffn_gate`, "Q8_0", width, feedForward);
    add(`${block}.ffn_up`, "Q8_0", width, feedForward);
    add(`${block}.ffn_down`, "Q8_0", feedForward, width);
  }
  const uint16 = (value: number) => ({ type: "uint16", value }) as const;
  const count = { type: "int32", value: list.length } as const;
  const part = (number: number) => ({
    "split.no": uint16(number),
    "split.count": uint16(2),
    "split.tensors.count": count,
  });
  const half = second === undefined ? list.length : list.length / 2;
  if (second !== undefined) writeGguf(second, part(1), list.slice(half));
  writeGguf(
    path,
    {
      ...(second === undefined ? {} : part(0)),
      "general.architecture": { type: "string", value: "gemma3" },
      "general.name": { type: "string", value: "sliding window" },
      "gemma3.block_count": uint32(layers),
      "gemma3.context_length": uint32(32768),
      "gemma3.embedding_length": uint32(width),
      "gemma3.feed_forward_length": uint32(feedForward),
      "gemma3.attention.head_count": uint32(heads),
      "gemma3.attention.head_count_kv": uint32(1),
      "gemma3.attention.key_length": uint32(headSize),
      "gemma3.attention.value_length": uint32(headSize),
      "gemma3.attention.sliding_window": uint32(512),
      "gemma3.attention.layer_norm_rms_epsilon": { type: "float32", value: 1e-6 },
      "gemma3.rope.freq_base": { type: "float32", value: 1_000_000 },
      "tokenizer.ggml.model": { type: "string", value: "gpt2" },
      "tokenizer.ggml.pre": { type: "string", value: "gpt-2" },
      "tokenizer.ggml.tokens": { type: "strings", value: tokens },
      "tokenizer.ggml.token_type": { type: "int32s", value: new Int32Array(tokens.length).fill(1) },
      "tokenizer.ggml.merges": { type: "strings", value: ["t 1"] },
      "tokenizer.ggml.eos_token_id": uint32(0),
      "tokenizer.chat_template": { type: "string", value: "{% for m in messages %}{{ m.content }}{% endfor %}" },
    },
    list.slice(0, half),
  );
}
