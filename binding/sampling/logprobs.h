// Log probabilities of the model's own distribution: the softmax of the logits as the model gave them, before any
// sampler, bias or mask. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "llama.h"

namespace tokenloop {

struct TokenLogprobs {
  llama_token token = LLAMA_TOKEN_NULL;
  float logprob = 0;                               // natural logarithm, <= 0
  std::vector<std::pair<llama_token, float>> top;  // most likely first
};

// The chosen token and the `top` most likely ones (0: none). Cost: one pass for the sum, one to select.
TokenLogprobs ComputeLogprobs(std::span<const float> logits, llama_token chosen, uint32_t top);

// log(sum(exp(logits))), with a relative error of the sum below 1e-6; -infinity where no logit is finite.
double LogSumExp(std::span<const float> logits);

}  // namespace tokenloop
