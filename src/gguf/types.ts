import type { TensorType } from "./tensor-types.js";
import type { TokenTexts } from "./tokens.js";

/** GGUF's value types, by their number in the file. */
export const valueTypes = [
  "uint8",
  "int8",
  "uint16",
  "int16",
  "uint32",
  "int32",
  "float32",
  "bool",
  "string",
  "array",
  "uint64",
  "int64",
  "float64",
] as const;
export type ValueType = (typeof valueTypes)[number];

/** A number is a bigint only where a double cannot hold it. */
export type GgufScalar = number | bigint | boolean | string;

export interface GgufArray {
  readonly element: Exclude<ValueType, "array">;
  readonly length: number;
  /** Its elements; of an array that nobody asks about (see read.ts) none. */
  readonly values: ArrayLike<GgufScalar> | undefined;
  /** Of the vocabulary's list of tokens. */
  readonly tokens?: TokenTexts;
}

export interface GgufEntry {
  readonly type: ValueType;
  readonly value: GgufScalar | GgufArray;
}

export interface GgufTensor {
  readonly name: string;
  /** ggml's order: the length of a row first. 1 to 4 numbers, each at least 1. */
  readonly shape: readonly number[];
  readonly type: TensorType;
  /** Of its data, from the beginning of the file. */
  readonly offset: number;
  readonly bytes: number;
}

/** What is in a GGUF file, save the tensors' data. */
export interface GgufFile {
  readonly path: string;
  /** Of the whole file. */
  readonly bytes: number;
  readonly version: number;
  readonly metadata: ReadonlyMap<string, GgufEntry>;
  readonly tensors: readonly GgufTensor[];
}
