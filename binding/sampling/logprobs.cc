#include "sampling/logprobs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sampling/largest.h"

namespace tokenloop {
namespace {

// exp(x) for x <= 0, as 2^i * 2^f with a polynomial for 2^f on [0, 1) (its Taylor series to the 7th power: below 1e-7
// everywhere). Without branches or calls, so that the loop below becomes vector code, which one over std::exp does not.
float Exp(float x) {
  const float t = std::max(x, -87.0f) * 1.442695041f;
  const auto truncated = static_cast<int32_t>(t);
  const int32_t whole = truncated - (t < static_cast<float>(truncated) ? 1 : 0);
  const float f = t - static_cast<float>(whole);
  float power = 1.525273380e-5f;
  power = power * f + 1.540353039e-4f;
  power = power * f + 1.333355815e-3f;
  power = power * f + 9.618129108e-3f;
  power = power * f + 5.550410866e-2f;
  power = power * f + 2.402265070e-1f;
  power = power * f + 6.931471806e-1f;
  power = power * f + 1.0f;
  return power * std::bit_cast<float>((whole + 127) << 23);
}

}  // namespace

double LogSumExp(std::span<const float> logits) {
  const llama_token largest = FirstOfLargest(logits);
  if (largest == LLAMA_TOKEN_NULL) return -std::numeric_limits<double>::infinity();
  const float most = logits[static_cast<size_t>(largest)];
  constexpr size_t kBlock = 1024;
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t end = std::min(logits.size(), begin + kBlock);
    float block[16] = {};
    size_t at = begin;
    for (; at + 16 <= end; at += 16) {
      for (size_t lane = 0; lane < 16; ++lane) block[lane] += Exp(logits[at + lane] - most);
    }
    for (const float lane : block) sum += lane;
    for (; at < end; ++at) sum += Exp(logits[at] - most);
  }
  return most + std::log(sum);
}

TokenLogprobs ComputeLogprobs(std::span<const float> logits, llama_token chosen, uint32_t top) {
  const double normaliser = LogSumExp(logits);
  const auto logprob = [&](float logit) { return static_cast<float>(std::min(0.0, logit - normaliser)); };
  TokenLogprobs result;
  result.token = chosen;
  result.logprob = logprob(logits[static_cast<size_t>(chosen)]);
  if (top > 0) {
    std::vector<llama_token_data> largest;
    SelectLargest(logits, {}, top, largest);
    for (const llama_token_data& candidate : largest) result.top.emplace_back(candidate.id, logprob(candidate.logit));
  }
  return result;
}

}  // namespace tokenloop
