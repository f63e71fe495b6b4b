// Parts of engine/ that need no model.
#pragma once

#include <napi.h>

namespace tokenloop {

// drafter(most) -> { draft(Int32Array): number[], confirm(drafted, accepted) }
Napi::Value MakeDrafter(const Napi::CallbackInfo& info);

// workers(helpers, count, rounds) -> how often each of the pieces was done
Napi::Value RunWorkers(const Napi::CallbackInfo& info);

}  // namespace tokenloop
