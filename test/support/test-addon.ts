import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/** tokenloop_test.node: the pure C++ parts (binding/test_addon), built beside the addon and never published. */
export interface TestAddon {
  utf8Holder(): { push(bytes: Buffer): Buffer; finish(): Buffer; held(): number };
  outputText(stops: string[]): {
    push(bytes: Buffer): { text: Buffer; stopped: boolean };
    finish(): { text: Buffer; stopped: boolean };
    matched(): number;
  };
  planStep(
    sequences: SequenceView[],
    limits: { batchSize: number; promptBudget: number; aloneBudget: number; freeCells: number },
  ): { shares: [index: number, tokens: number][]; preempted: number[] };
  promptBudget(targetMs: number): {
    observe(promptTokens: number, decoding: number, ms: number): void;
    tokens(decoding: number): number;
  };
  drafter(most: number): { draft(tokens: Int32Array): number[]; confirm(drafted: number, accepted: number): void };
  /** Runs `count` pieces of work on `helpers` threads and the caller, `rounds` times; how often each piece was done. */
  workers(helpers: number, count: number, rounds: number): number[];
  prefixTree(): {
    add(sequence: number, key: string): void;
    addShared(sequence: number, source: number, length: number): void;
    append(sequence: number, tokens: Int32Array): void;
    keep(sequence: number): void;
    remove(sequence: number): void;
    find(key: string, tokens: Int32Array): { length: number; source: number };
    length(sequence: number): number;
    ownCells(sequence: number): number;
    idleCells(source: number, length: number): number;
    counts(): { cells: number; active: number };
  };
  logSumExp(logits: Float32Array): number;
  /** `allowed`: the tokens that count, bit id % 64 of word id / 64; all without it. */
  firstOfLargest(logits: Float32Array, allowed?: BigUint64Array): number;
  selectLargest(logits: Float32Array, count: number, allowed?: BigUint64Array): number[];
  /** llama.cpp's own defaults, under the names of the option table; and its lists. */
  llamaSamplingDefaults(): { samplers: string[]; dry_sequence_breakers: string[]; [name: string]: unknown };
  controlText(controlTexts: string[]): { mark(text: string): string };
  splitMarked(text: string): string[];
  grammar(text: string): { error: GrammarError } | ParsedGrammar;
  /** `bytes`: all tokens' bytes, one after another; `ends[id]`: where token `id` ends. */
  grammarVocabulary(bytes: Buffer, ends: Uint32Array): GrammarVocabulary;
}

export interface GrammarError {
  message: string;
  line: number;
  column: number;
}

export interface ParsedGrammar {
  error?: undefined;
  bytes: number;
  start(): GrammarState;
  masker(vocabulary: GrammarVocabulary): GrammarMasker;
  /** Null when the markers are none, empty, or (`fromMarker`) not what the grammar begins with. */
  lazy(markers: Buffer[], fromMarker: boolean, vocabulary: GrammarVocabulary): LazyGrammar | null;
}

/** Free text up to a marker, then the grammar: a state and its masks. */
export interface LazyGrammar {
  acceptToken(id: number): boolean;
  started(): boolean;
  canEnd(): boolean;
  mask(): Uint8Array | null;
  bruteForce(): Uint8Array;
}

export interface GrammarState {
  accept(byte: number): boolean;
  acceptBytes(bytes: Buffer): boolean;
  acceptToken(id: number, bytes: Buffer): boolean;
  canEnd(): boolean;
  dead(): boolean;
  overflowed(): boolean;
  clone(): GrammarState;
  equals(other: GrammarState): boolean;
  hash(): string;
  threads(): number;
}

/** Masks are little-endian: token `id` is bit `id % 8` of byte `id / 8`. */
export interface GrammarMasker {
  /** Null when the grammar is too ambiguous. */
  mask(state: GrammarState): Uint8Array | null;
  /** What was found by then. */
  partialMask(state: GrammarState): Uint8Array;
  allows(state: GrammarState, id: number): boolean | null;
  /** The token at `share`, in [0, 1), of the allowed ones; -1 where none is. What the largest of random logits is. */
  pick(state: GrammarState, share: number): number | null;
  /** One acceptToken for each token. */
  bruteForce(state: GrammarState): Uint8Array;
  /** Microseconds that a mask takes. */
  time(state: GrammarState): number;
  bytes(): number;
}

export interface GrammarVocabulary {
  nodes: number;
  bytes: number;
  milliseconds: number;
}

export interface SequenceView {
  pending: number;
  cells: number;
  decoding: boolean;
  priority: number;
  arrival: number;
  paused: boolean;
  drafts: number;
}

export function loadTestAddon(): TestAddon {
  const path =
    process.env.TOKENLOOP_TEST_NATIVE ??
    fileURLToPath(new URL("../../build/test/tokenloop_test.node", import.meta.url));
  return createRequire(import.meta.url)(path) as TestAddon;
}

/** Every way to cut `bytes` into pieces, if there are few; otherwise one cut at every place, byte by byte, and whole. */
export function* chunkings(bytes: Buffer): Generator<Buffer[]> {
  const size = bytes.length;
  if (size <= 12) {
    for (let mask = 0; mask < 1 << Math.max(0, size - 1); mask++) {
      const pieces: Buffer[] = [];
      let start = 0;
      for (let i = 1; i <= size; i++) {
        if (i === size || (mask >> (i - 1)) & 1) {
          pieces.push(bytes.subarray(start, i));
          start = i;
        }
      }
      yield pieces;
    }
    return;
  }
  for (let cut = 0; cut <= size; cut++) yield [bytes.subarray(0, cut), bytes.subarray(cut)];
  yield Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
}

/** A small seeded generator, so that a failing property can be run again. */
export function randomSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
