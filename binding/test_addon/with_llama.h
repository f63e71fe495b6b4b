// What needs llama.cpp's headers, though none of its code.
#pragma once

#include <napi.h>

namespace tokenloop {

// llamaSamplingDefaults() -> { [name in the option table]: number }
Napi::Value LlamaSamplingDefaults(const Napi::CallbackInfo& info);

// firstOfLargest(Float32Array, allowed?: BigUint64Array) -> token id or -1
Napi::Value FirstOfLargestOf(const Napi::CallbackInfo& info);

// selectLargest(Float32Array, count, allowed?: BigUint64Array) -> token ids, largest logit first
Napi::Value SelectLargestOf(const Napi::CallbackInfo& info);

// logSumExp(Float32Array) -> number
Napi::Value LogSumExpOf(const Napi::CallbackInfo& info);

}  // namespace tokenloop
