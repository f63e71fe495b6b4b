// The JSON texts of last events (NativeResult and NativeFailure in src/native.ts) and of logprobs.
#pragma once

#include <string>

#include "engine/decoder.h"
#include "engine/request.h"
#include "engine/types.h"
#include "sampling/logprobs.h"

namespace tokenloop {

std::string ResultJson(const Request& request);
// One entry of OpenAI's logprobs.content.
std::string LogprobsJson(const TokenLogprobs& logprobs, const Decoder& decoder);
std::string FailureJson(const Failure& failure);

}  // namespace tokenloop
