// The JSON texts of last events (NativeResult and NativeFailure in src/native.ts).
#pragma once

#include <string>

#include "engine/request.h"
#include "engine/types.h"

namespace tokenloop {

std::string ResultJson(const Request& request);
std::string FailureJson(const Failure& failure);

}  // namespace tokenloop
