import { ModelFileError } from "../errors.js";
import { templateFault } from "./check-template.js";
import { checkTensors } from "./check-tensors.js";
import { checkVocabulary } from "./check-vocabulary.js";
import type { GgufArray, GgufEntry, GgufFile } from "./types.js";

/** llama.cpp's own bounds; beyond them it aborts the process. */
const mostLayers = 512;
const mostExperts = 1024;
/** Sizes beyond these belong to no model; they keep products exact and far from overflow. */
const mostWidth = 1 << 22;
const mostHeads = 1 << 16;

const ropeScalings = ["none", "linear", "yarn", "longrope"];

/** Architectures whose heads are rotated as a whole: llama.cpp asserts it when it builds their graph. */
const wholeRotary = new Set(
  "arcee arctic baichuan codeshell cogvlm deci deepseek dots1 dream ernie4_5 ernie4_5-moe exaone exaone4 exaone-moe falcon granite grok internlm2 llada llada-moe llama4 mistral3 nemotron olmo olmo2 olmoe orion qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3vl qwen3vlmoe smallthinker smollm3 starcoder2 xverse".split(
    " ",
  ),
);

/**
 * Checks what a header says about the model, in as far as llama.cpp would not fail with an error but end the process, read
 * beyond a buffer or never finish. What it refuses by itself (missing tensors, wrong shapes) is left to it.
 *
 * @throws {ModelFileError}
 */
export function checkModel(file: GgufFile): void {
  const metadata = new Metadata(file);
  const architecture = metadata.text("general.architecture");
  const type = metadata.optionalText("general.type");
  if (type !== undefined && type !== "model") {
    throw metadata.error("general.type", "gguf_foreign", `this file holds a '${type}', not a model`);
  }
  if (architecture === "clip") {
    throw metadata.error(
      "general.architecture",
      "gguf_foreign",
      "this is a projector for images or sound, not a language model",
    );
  }
  if (file.tensors.length === 0) throw metadata.error("header", "gguf_foreign", "there are no tensors in it");
  checkTensors(file);
  checkShape(metadata, architecture);
  checkExperts(metadata, architecture);
  checkVocabulary(metadata);
  for (const [key, { value }] of file.metadata) {
    if (!key.startsWith("tokenizer.chat_template") || typeof value !== "string") continue;
    const fault = templateFault(value);
    if (fault !== undefined) throw metadata.error(key, "gguf_corrupt", fault);
  }
}

function checkShape(metadata: Metadata, architecture: string): void {
  const of = (name: string) => `${architecture}.${name}`;
  const layers = metadata.count(of("block_count"), 1, mostLayers);
  metadata.count(of("context_length"), 1, 2 ** 31 - 1);
  const width = metadata.count(of("embedding_length"), 1, mostWidth);
  metadata.counts(of("feed_forward_length"), layers, 0, mostWidth);
  const heads = metadata.counts(of("attention.head_count"), layers, 0, mostHeads);
  const keyHeads = metadata.counts(of("attention.head_count_kv"), layers, 0, mostHeads);
  heads.forEach((count, layer) => {
    const shared = keyHeads[layer] ?? keyHeads[0] ?? count;
    if (shared > 0 && count % shared !== 0) {
      const reason = `${shared} heads do not divide the ${count} of attention.head_count`;
      throw metadata.error(of("attention.head_count_kv"), "gguf_corrupt", reason);
    }
  });
  checkHead(metadata, architecture, width, heads[0] ?? 0);
  const scaling = metadata.optionalText(of("rope.scaling.type"));
  if (scaling !== undefined && !ropeScalings.includes(scaling)) {
    throw metadata.error(of("rope.scaling.type"), "gguf_corrupt", `'${scaling}' is none of ${ropeScalings.join(", ")}`);
  }
  metadata.optionalCount(of("attention.sliding_window"), 0, 2 ** 31 - 1);
  for (const name of ["attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon", "rope.freq_base"]) {
    metadata.positive(of(name));
  }
}

function checkHead(metadata: Metadata, architecture: string, width: number, heads: number): void {
  const of = (name: string) => `${architecture}.${name}`;
  const keyLength = metadata.optionalCount(of("attention.key_length"), 1, mostWidth);
  const valueLength = metadata.optionalCount(of("attention.value_length"), 1, mostWidth);
  const rotated = metadata.optionalCount(of("rope.dimension_count"), 0, mostWidth);
  if (heads === 0) return;
  if (keyLength === undefined && width < heads) {
    throw metadata.error(of("attention.head_count"), "gguf_corrupt", `${heads} heads share a width of ${width}`);
  }
  const key = keyLength ?? Math.floor(width / heads);
  const value = valueLength ?? Math.floor(width / heads);
  if (key * heads > mostWidth || value * heads > mostWidth) {
    throw metadata.error(
      of("attention.key_length"),
      "gguf_corrupt",
      `${heads} heads of ${Math.max(key, value)} are too wide`,
    );
  }
  if (!wholeRotary.has(architecture)) return;
  if (key !== value) {
    const reason = `heads of ${value} do not fit keys of ${key} in this architecture`;
    throw metadata.error(of("attention.value_length"), "gguf_corrupt", reason);
  }
  if (rotated !== undefined && rotated !== key) {
    throw metadata.error(of("rope.dimension_count"), "gguf_corrupt", `${rotated} is not the heads' size, ${key}`);
  }
}

function checkExperts(metadata: Metadata, architecture: string): void {
  const of = (name: string) => `${architecture}.${name}`;
  const experts = metadata.optionalCount(of("expert_count"), 0, mostExperts) ?? 0;
  const used = metadata.optionalCount(of("expert_used_count"), 0, mostExperts) ?? 0;
  const groups = metadata.optionalCount(of("expert_group_count"), 0, mostExperts) ?? 0;
  const groupsUsed = metadata.optionalCount(of("expert_group_used_count"), 0, mostExperts) ?? 0;
  const refuse = (name: string, reason: string) => metadata.error(of(name), "gguf_corrupt", reason);
  if (used > experts) throw refuse("expert_used_count", `${used} of ${experts} experts`);
  if (experts > 0 && used === 0) throw refuse("expert_used_count", `none of ${experts} experts`);
  if (groups > 0 && groups >= experts) throw refuse("expert_group_count", `${groups} groups of ${experts} experts`);
  if (groups > 1 && (experts % groups !== 0 || groupsUsed === 0 || groupsUsed >= groups)) {
    throw refuse("expert_group_used_count", `${groupsUsed} of ${groups} groups of ${experts} experts`);
  }
}

/** Looks things up in a file's metadata; what is there and does not fit is an error that names its key. */
export class Metadata {
  readonly #file: GgufFile;

  constructor(file: GgufFile) {
    this.#file = file;
  }

  error(key: string, code: ModelFileError["code"], reason: string): ModelFileError {
    const where = this.#file.metadata.has(key) || key !== "header" ? `metadata key '${key}'` : key;
    return new ModelFileError(this.#file.path, code, where, reason);
  }

  text(key: string): string {
    const text = this.optionalText(key);
    if (text === undefined || text === "") throw this.error(key, "gguf_foreign", "it is missing");
    return text;
  }

  optionalText(key: string): string | undefined {
    const entry = this.#file.metadata.get(key);
    if (entry === undefined) return undefined;
    if (typeof entry.value !== "string") throw this.#wrongType(key, entry, "a string");
    return entry.value;
  }

  count(key: string, least: number, most: number): number {
    const count = this.optionalCount(key, least, most);
    if (count === undefined) throw this.error(key, "gguf_corrupt", "it is missing");
    return count;
  }

  /** llama.cpp takes numbers of one type only: uint32. A list is not for us to judge here. */
  optionalCount(key: string, least: number, most: number): number | undefined {
    const entry = this.#file.metadata.get(key);
    if (entry === undefined || isArray(entry)) return undefined;
    if (entry.type !== "uint32" || typeof entry.value !== "number") throw this.#wrongType(key, entry, "uint32");
    if (entry.value < least || entry.value > most) {
      throw this.error(key, "gguf_corrupt", `${entry.value} is not from ${least} to ${most}`);
    }
    return entry.value;
  }

  /** One number for all layers, or one for each. */
  counts(key: string, layers: number, least: number, most: number): number[] {
    const entry = this.#file.metadata.get(key);
    if (entry === undefined) return [];
    if (!isArray(entry)) return [this.count(key, least, most)];
    const { element, length, values } = entry.value;
    if (element !== "uint32" && element !== "int32") throw this.#wrongType(key, entry, "uint32 or int32");
    if (length !== layers) throw this.error(key, "gguf_corrupt", `it has ${length} elements for ${layers} layers`);
    return Array.from(values ?? [], (value) => {
      if (typeof value === "number" && value >= least && value <= most) return value;
      throw this.error(key, "gguf_corrupt", `${String(value)} is not from ${least} to ${most}`);
    });
  }

  positive(key: string): void {
    const entry = this.#file.metadata.get(key);
    if (entry === undefined || isArray(entry)) return;
    if (entry.type !== "float32") throw this.#wrongType(key, entry, "float32");
    if (typeof entry.value !== "number" || !(entry.value > 0 && entry.value < Infinity)) {
      throw this.error(key, "gguf_corrupt", `${String(entry.value)} is no finite number above 0`);
    }
  }

  optionalArray(key: string, elements: readonly GgufArray["element"][]): GgufArray | undefined {
    const entry = this.#file.metadata.get(key);
    if (entry === undefined) return undefined;
    if (!isArray(entry)) throw this.#wrongType(key, entry, "an array");
    if (!elements.includes(entry.value.element)) throw this.#wrongType(key, entry, `${elements.join(" or ")}[]`);
    return entry.value;
  }

  optionalBoolean(key: string): void {
    const entry = this.#file.metadata.get(key);
    if (entry !== undefined && entry.type !== "bool") throw this.#wrongType(key, entry, "a boolean");
  }

  #wrongType(key: string, entry: GgufEntry, expected: string): ModelFileError {
    const found = isArray(entry) ? `${entry.value.element}[]` : entry.type;
    return this.error(key, "gguf_corrupt", `its type is ${found} and must be ${expected}`);
  }
}

function isArray(entry: GgufEntry): entry is GgufEntry & { value: GgufArray } {
  return typeof entry.value === "object";
}
