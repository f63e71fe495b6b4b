import { ModelFileError } from "../errors.js";
import { printable } from "./read.js";
import type { GgufFile, GgufTensor } from "./types.js";

/** Types that hold no weights: numbers for tables, and two that llama.cpp makes for its own sums. */
const noWeights = new Set(["I8", "I16", "I32", "I64", "F64", "Q8_1", "Q8_K"]);
/** Tables of token and expert numbers. */
const tables = /(^|[._])(d2t|t2d|tid2eid)(\.|$)/;

/** Matrices of recurrent layers and short convolutions that are read number by number. */
const recurrent = /\.(ssm_conv1d\w*|ssm_a|shortconv\.conv)(\.weight)?$/;

/**
 * The types of tensors: llama.cpp ends the process where its arithmetic has no case for one. Matrices may have any type of
 * weights; vectors, norms and convolutions are F32 in every file that its own converters write.
 *
 * @throws {ModelFileError}
 */
export function checkTensors({ path, tensors }: GgufFile): void {
  for (const tensor of tensors) {
    if (tables.test(tensor.name)) continue;
    const { name, type } = tensor;
    const fault = noWeights.has(type.name)
      ? "which is no type of weights"
      : isPlain(tensor) && type.name !== "F32"
        ? "and must be F32"
        : undefined;
    if (fault === undefined) continue;
    throw new ModelFileError(path, "gguf_corrupt", `tensor '${printable(name)}'`, `its type is ${type.name}, ${fault}`);
  }
}

function isPlain({ name, shape }: GgufTensor): boolean {
  return shape.slice(1).every((size) => size === 1) || name.endsWith("_norm.weight") || recurrent.test(name);
}
