// Estimates a model's memory on a native thread.
#pragma once

#include <napi.h>

#include "engine/types.h"

namespace tokenloop {

Napi::Object MemoryObject(Napi::Env env, const MemoryUse& memory);

// estimateMemory(options): a promise of NativeMemoryEstimate (src/native.ts).
Napi::Value EstimateMemoryCall(const Napi::CallbackInfo& info);

}  // namespace tokenloop
