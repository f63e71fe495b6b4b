// The grammar engine for the test runner.
#pragma once

#include <napi.h>

namespace tokenloop {

// grammar(text: string) -> { error: { message, line, column } } |
//   { start(): State, masker(Vocabulary): Masker, lazy(markers: Buffer[], fromMarker: boolean, Vocabulary): Lazy | null
//   }
// State: { accept(byte), acceptBytes(Buffer), acceptToken(id, Buffer): boolean; canEnd(), dead(), overflowed():
// boolean;
//          clone(): State; equals(State): boolean; hash(): string; threads(): number }
// Masker: { mask(State): Uint8Array | null; partialMask(State): Uint8Array; allows(State, id): boolean | null;
//           pick(State, share): number | null; bruteForce(State): Uint8Array; time(State): microseconds; bytes():
//           number }
// Lazy: { acceptToken(id), started(), canEnd(): boolean; mask(): Uint8Array | null; bruteForce(): Uint8Array }
Napi::Value MakeGrammar(const Napi::CallbackInfo& info);

// grammarVocabulary(bytes: Buffer, ends: Uint32Array) -> { handle, nodes, bytes }
Napi::Value MakeVocabulary(const Napi::CallbackInfo& info);

}  // namespace tokenloop
