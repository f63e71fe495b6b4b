import type { Automaton } from "./automaton.js";
import type { Decimal } from "./decimal.js";

/** JSON's kinds of values as bits. Numbers are split by value: 1.0 is an integer. */
export const kinds = {
  null: 1,
  true: 2,
  false: 4,
  integer: 8,
  fraction: 16,
  string: 32,
  array: 64,
  object: 128,
} as const;
export const allKinds = 255;

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A schema, by its number in the loaded document: `n` for itself, `-n` for its negation. Never 0. */
export type Term = number;

/** A conjunction of terms: what a value at one place must satisfy. No term at all: anything. */
export type Node = readonly Term[];

export interface Bound {
  value: Decimal;
  /** Whether the value itself is left out. */
  exclusive: boolean;
}

/** What one schema object says about array elements. */
export interface ArrayFacet {
  prefix: readonly Node[];
  rest: Node;
}

/** What one schema object says about properties. */
export interface ObjectFacet {
  properties: ReadonlyMap<string, Node>;
  patterns: readonly { automaton: Automaton; node: Node }[];
  /** For names that neither of the above covers. */
  additional: Node;
}

/** Where an unsupported combination is to be reported. */
export interface Source {
  pointer: string;
  keyword: string;
}

/**
 * One alternative of a schema: a conjunction of simple constraints. A schema is a list of them, any of which may hold.
 * Each family of fields says something about one kind of value only; `kinds` says which kinds may occur.
 */
export interface Alternative {
  kinds: number;
  /** When set, only these values; everything else has already been checked against them. */
  values: readonly Json[] | undefined;
  minLength: number;
  maxLength: number;
  /** Automata over the decoded string; all must accept. */
  strings: readonly Automaton[];
  lower: Bound | undefined;
  upper: Bound | undefined;
  multiples: readonly Decimal[];
  /** The opposite: numbers that are no multiples of these. */
  indivisible: readonly Decimal[];
  arrays: readonly ArrayFacet[];
  minItems: number;
  maxItems: number;
  unique: boolean;
  contains: readonly { node: Node; min: number }[];
  objects: readonly ObjectFacet[];
  required: readonly string[];
  forbidden: readonly string[];
  names: readonly Node[];
  minProperties: number;
  maxProperties: number;
  /** Where to point when this cannot be written as a grammar, by topic. */
  sources: Readonly<Record<string, Source>>;
}

export const anything: Alternative = {
  kinds: allKinds,
  values: undefined,
  minLength: 0,
  maxLength: Number.POSITIVE_INFINITY,
  strings: [],
  lower: undefined,
  upper: undefined,
  multiples: [],
  indivisible: [],
  arrays: [],
  minItems: 0,
  maxItems: Number.POSITIVE_INFINITY,
  unique: false,
  contains: [],
  objects: [],
  required: [],
  forbidden: [],
  names: [],
  minProperties: 0,
  maxProperties: Number.POSITIVE_INFINITY,
  sources: {},
};
