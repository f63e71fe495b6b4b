// llama.cpp's own sampling defaults, which the option table must have.
#pragma once

#include <napi.h>

namespace tokenloop {

// llamaSamplingDefaults() -> { [name in the option table]: number }
Napi::Value LlamaSamplingDefaults(const Napi::CallbackInfo& info);

}  // namespace tokenloop
