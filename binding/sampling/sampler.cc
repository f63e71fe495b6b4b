#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace tokenloop {
namespace {

// Beyond this many, selecting ahead of the chain gains nothing.
constexpr int32_t kMostPreselected = 128;

Failure Invalid(const std::string& param, const std::string& message) {
  return {"invalid_request", 400, param, message};
}

}  // namespace

Result<std::unique_ptr<Sampler>> Sampler::Create(const llama_vocab* vocab, const SamplingParams& params,
                                                 uint32_t context_size) {
  const int32_t n_vocab = llama_vocab_n_tokens(vocab);

  // llama.cpp asserts on these; the façade has checked them, but a native caller may not have.
  if (!std::isfinite(params.temperature) || params.temperature < 0) {
    return Invalid("temperature", "temperature must be a finite number >= 0.");
  }
  if (!std::isfinite(params.repeat_penalty) || params.repeat_penalty <= 0) {
    return Invalid("repeat_penalty", "repeat_penalty must be a finite number > 0.");
  }
  if (!std::isfinite(params.frequency_penalty))
    return Invalid("frequency_penalty", "frequency_penalty must be finite.");
  if (!std::isfinite(params.presence_penalty)) return Invalid("presence_penalty", "presence_penalty must be finite.");
  if (params.repeat_last_n < -1) return Invalid("repeat_last_n", "repeat_last_n must be >= -1.");

  auto sampler = std::unique_ptr<Sampler>(new Sampler);
  sampler->n_vocab_ = static_cast<uint32_t>(n_vocab);
  sampler->seed_ = params.seed.value_or(std::random_device{}());
  // llama.cpp reads this one value as "draw a seed"; ours must be reproducible.
  const uint32_t seed = sampler->seed_ == LLAMA_DEFAULT_SEED ? 0 : sampler->seed_;

  std::vector<llama_logit_bias> bias;
  for (const auto& [token, value] : params.logit_bias) {
    if (token < 0 || token >= n_vocab) {
      return Invalid("logit_bias", "logit_bias names token " + std::to_string(token) + ", but the vocabulary has " +
                                       std::to_string(n_vocab) + " tokens.");
    }
    if (std::isnan(value)) return Invalid("logit_bias", "logit_bias must not be NaN.");
    bias.push_back({token, value});
  }
  int32_t n_suppressed = 0;
  const llama_token* suppressed = llama_vocab_get_suppress_tokens(vocab, &n_suppressed);
  for (int32_t i = 0; i < n_suppressed; ++i) bias.push_back({suppressed[i], -std::numeric_limits<float>::infinity()});

  const bool penalises =
      params.repeat_last_n != 0 &&
      (params.repeat_penalty != 1.0f || params.frequency_penalty != 0.0f || params.presence_penalty != 0.0f);
  if (penalises) {
    sampler->lookback_ = params.repeat_last_n < 0 ? context_size : static_cast<uint32_t>(params.repeat_last_n);
  }
  const bool greedy = params.temperature <= 0;
  if (greedy && !penalises && bias.empty()) return sampler;

  llama_sampler_chain_params chain_params = llama_sampler_chain_default_params();
  chain_params.no_perf = true;
  sampler->chain_.reset(llama_sampler_chain_init(chain_params));
  const auto add = [&](llama_sampler* link) { llama_sampler_chain_add(sampler->chain_.get(), link); };

  if (!bias.empty()) add(llama_sampler_init_logit_bias(n_vocab, static_cast<int32_t>(bias.size()), bias.data()));
  if (penalises) {
    add(llama_sampler_init_penalties(n_vocab, static_cast<int32_t>(sampler->lookback_), params.repeat_penalty,
                                     params.frequency_penalty, params.presence_penalty));
  }
  if (greedy) {
    add(llama_sampler_init_greedy());
  } else if (params.mirostat == 1) {
    add(llama_sampler_init_temp(params.temperature));
    add(llama_sampler_init_mirostat(n_vocab, seed, params.mirostat_tau, params.mirostat_eta, 100));
  } else if (params.mirostat == 2) {
    add(llama_sampler_init_temp(params.temperature));
    add(llama_sampler_init_mirostat_v2(seed, params.mirostat_tau, params.mirostat_eta));
  } else {
    // A link that would change nothing is left out: each one costs a pass over the candidates.
    if (params.top_k > 0) add(llama_sampler_init_top_k(params.top_k));
    const bool first = !penalises && bias.empty();
    if (first && params.top_k > 0 && params.top_k <= kMostPreselected) {
      sampler->preselect_ = static_cast<uint32_t>(params.top_k);
    }
    if (params.typical_p < 1.0f) add(llama_sampler_init_typical(params.typical_p, 0));
    if (params.top_p < 1.0f) add(llama_sampler_init_top_p(params.top_p, 0));
    if (params.min_p > 0.0f) add(llama_sampler_init_min_p(params.min_p, 0));
    add(llama_sampler_init_temp(params.temperature));
    add(llama_sampler_init_dist(seed));
  }
  return sampler;
}

std::unique_ptr<Sampler> Sampler::Greedy(uint32_t vocab_size) {
  auto sampler = std::unique_ptr<Sampler>(new Sampler);
  sampler->n_vocab_ = vocab_size;
  return sampler;
}

llama_token Sampler::Sample(const float* logits, TokenBits allowed, Candidates& scratch) {
  if (!chain_) return FirstOfLargest({logits, n_vocab_}, allowed);
  llama_token_data_array array = {};
  if (preselect_ > 0) {
    SelectLargest({logits, n_vocab_}, allowed, preselect_, scratch);
    // Sorted, and no larger than top_k wants: that link has nothing left to do.
    array = {scratch.data(), scratch.size(), -1, true};
  } else {
    scratch.clear();
    float sum = 0;
    const auto take = [&](size_t i) {
      scratch.push_back({static_cast<llama_token>(i), logits[i], 0.0f});
      sum += logits[i];
    };
    if (allowed.empty()) {
      scratch.reserve(n_vocab_);
      for (uint32_t i = 0; i < n_vocab_; ++i) take(i);
    }
    for (size_t word = 0; word < allowed.size(); ++word) ForEachBit(allowed[word], 64 * word, take);
    if (std::isnan(sum)) return LLAMA_TOKEN_NULL;
    array = {scratch.data(), scratch.size(), -1, false};
  }
  if (array.size == 0) return LLAMA_TOKEN_NULL;
  llama_sampler_apply(chain_.get(), &array);
  if (array.selected < 0 || static_cast<size_t>(array.selected) >= array.size) return LLAMA_TOKEN_NULL;
  const llama_token_data& chosen = array.data[array.selected];
  return std::isfinite(chosen.logit) ? chosen.id : LLAMA_TOKEN_NULL;
}

void Sampler::Accept(llama_token token) {
  if (chain_) llama_sampler_accept(chain_.get(), token);
}

}  // namespace tokenloop
