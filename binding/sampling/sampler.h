// One request's sampler: llama.cpp's chain, built from the option table. Owned by the request, used on the loop thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/types.h"
#include "llama.h"
#include "sampling/largest.h"

namespace tokenloop {

// Working memory for one sampling call, as large as the vocabulary. One per thread that samples.
using Candidates = std::vector<llama_token_data>;

class Sampler {
 public:
  // The chain, in llama.cpp's own order: logit_bias, penalties, top_k, typical_p, top_p, min_p, temperature, dist. With
  // Mirostat: logit_bias, penalties, temperature, mirostat. At temperature 0: logit_bias, penalties, greedy. Tokens
  // that the model's file asks to suppress are banned. `context_size` is what repeat_last_n = -1 stands for. Fails with
  // code "invalid_request" where a value would trip llama.cpp (non-finite penalty, token id out of range).
  static Result<std::unique_ptr<Sampler>> Create(const llama_vocab* vocab, const SamplingParams& params,
                                                 uint32_t context_size);

  // The most likely token, always.
  static std::unique_ptr<Sampler> Greedy(uint32_t vocab_size);

  // Draws from the model's logits (n_vocab of them), as if those of other tokens than `allowed` were -infinity. Returns
  // LLAMA_TOKEN_NULL when there is nothing to draw from: logits that are not numbers, or all of them banned.
  llama_token Sample(const float* logits, TokenBits allowed, Candidates& scratch);
  // Tells the penalties about a token of the prompt or of the answer.
  void Accept(llama_token token);
  // Last of a prompt that the penalties look at; 0 when they are off.
  uint32_t lookback() const { return lookback_; }
  uint32_t seed() const { return seed_; }

 private:
  struct ChainDeleter {
    void operator()(llama_sampler* chain) const { llama_sampler_free(chain); }
  };

  Sampler() = default;
  std::unique_ptr<llama_sampler, ChainDeleter> chain_;  // null: plain argmax is all there is to do
  uint32_t n_vocab_ = 0;
  uint32_t preselect_ = 0;  // > 0: top_k comes first, so only that many candidates enter the chain
  uint32_t lookback_ = 0;
  uint32_t seed_ = 0;
};

}  // namespace tokenloop
