// Argument objects (NativeLoadOptions, NativeRequest in src/native.ts) to the engine's structs. JavaScript thread.
#pragma once

#include <napi.h>

#include "engine/types.h"

namespace tokenloop {

Result<EngineConfig> ReadLoadOptions(const Napi::Value& value);
Result<RequestSpec> ReadRequest(const Napi::Value& value);

}  // namespace tokenloop
