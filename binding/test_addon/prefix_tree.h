#pragma once

#include <napi.h>

namespace tokenloop {

// prefixTree() -> the methods of PrefixTree (test/support/test-addon.ts)
Napi::Value MakePrefixTree(const Napi::CallbackInfo& info);

}  // namespace tokenloop
