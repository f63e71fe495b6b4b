// One request's sampler: llama.cpp's chain, built from the option table. Owned by the request, used on the loop thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/types.h"
#include "llama.h"
#include "sampling/largest.h"

namespace tokenloop {

// Working memory for one sampling call, as large as the vocabulary. One per thread that samples.
using Candidates = std::vector<llama_token_data>;

class Sampler {
 public:
  // The chain: logit_bias, then `params.samplers` in their order, then dist. With Mirostat: logit_bias, penalties, DRY,
  // temperature, mirostat. At temperature 0: logit_bias, penalties, DRY, greedy. Tokens that the model's file asks to
  // suppress are banned. `context_size` is what repeat_last_n and dry_penalty_last_n = -1 stand for. Fails with code
  // "invalid_request" where a value would trip llama.cpp (non-finite penalty, token id out of range). DRY looks through
  // the whole vocabulary for its breakers: tens of milliseconds with a large one.
  static Result<std::unique_ptr<Sampler>> Create(const llama_vocab* vocab, const SamplingParams& params,
                                                 uint32_t context_size);

  // The most likely token, always.
  static std::unique_ptr<Sampler> Greedy(uint32_t vocab_size);

  // Draws from the model's logits (n_vocab of them), as if those of other tokens than `allowed` were -infinity. Returns
  // LLAMA_TOKEN_NULL when there is nothing to draw from: logits that are not numbers, or all of them banned. Where only
  // the end of generation is allowed, it is drawn, whatever ignore_eos and min_tokens say.
  llama_token Sample(const float* logits, TokenBits allowed, Candidates& scratch);
  // Tells the penalties about a token of the prompt.
  void See(llama_token token);
  // The same for a token of the answer, which counts.
  void Accept(llama_token token);
  // Last of a prompt that the penalties and DRY look at; 0 when they are off.
  uint32_t lookback() const { return lookback_; }
  uint32_t seed() const { return seed_; }

 private:
  struct ChainDeleter {
    void operator()(llama_sampler* chain) const { llama_sampler_free(chain); }
  };

  Sampler() = default;
  // Adds a link of params.samplers, if it does something.
  std::optional<Failure> AddLink(const std::string& name, const llama_vocab* vocab, const SamplingParams& params,
                                 uint32_t context_size);
  void Add(llama_sampler* link);
  // Fills `scratch`, without the banned tokens; false where nothing can be drawn. Sorted where it is selected.
  bool Collect(const float* logits, TokenBits allowed, std::span<const llama_token> banned, Candidates& scratch) const;
  llama_token MostLikely(const float* logits, TokenBits allowed, std::span<const llama_token> banned,
                         Candidates& scratch) const;

  std::unique_ptr<llama_sampler, ChainDeleter> chain_;  // null: plain argmax is all there is to do
  uint32_t n_vocab_ = 0;
  uint32_t preselect_ = 0;  // > 0: top_k comes first, so only that many candidates enter the chain
  uint32_t links_ = 0;
  std::vector<llama_token> ends_;  // tokens that end generation, ascending; empty unless they may be banned
  bool never_ends_ = false;
  uint32_t min_tokens_ = 0;
  uint32_t accepted_ = 0;  // tokens of the answer
  uint32_t lookback_ = 0;
  uint32_t seed_ = 0;
};

}  // namespace tokenloop
