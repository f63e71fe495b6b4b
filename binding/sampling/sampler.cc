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

// Below it, a logit divided by the temperature may no longer be a number.
constexpr float kLeastPlainTemperature = 1e-3f;

// Lowers all logits by the largest: that one is then 0, and stays it whatever it is divided by.
void Shift(llama_sampler*, llama_token_data_array* candidates) {
  const std::span<llama_token_data> all(candidates->data, candidates->size);
  float largest = -std::numeric_limits<float>::infinity();
  for (const llama_token_data& each : all) largest = std::max(largest, each.logit);
  if (!std::isfinite(largest)) return;
  for (llama_token_data& each : all) each.logit -= largest;
}

llama_sampler* MakeShift() {
  static llama_sampler_i shift = [] {
    llama_sampler_i functions = {};
    functions.name = [](const llama_sampler*) { return "shift"; };
    functions.apply = Shift;
    return functions;
  }();
  return llama_sampler_init(&shift, nullptr);
}

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
  if (params.dry_penalty_last_n < -1) return Invalid("dry_penalty_last_n", "dry_penalty_last_n must be >= -1.");

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

  if (params.ignore_eos || params.min_tokens > 0) {
    sampler->never_ends_ = params.ignore_eos;
    sampler->min_tokens_ = static_cast<uint32_t>(params.min_tokens);
    for (llama_token token = 0; token < n_vocab; ++token) {
      if (llama_vocab_is_eog(vocab, token)) sampler->ends_.push_back(token);
    }
  }

  llama_sampler_chain_params chain_params = llama_sampler_chain_default_params();
  chain_params.no_perf = true;
  sampler->chain_.reset(llama_sampler_chain_init(chain_params));
  if (!bias.empty()) {
    sampler->Add(llama_sampler_init_logit_bias(n_vocab, static_cast<int32_t>(bias.size()), bias.data()));
  }
  const bool tempered = std::ranges::find(params.samplers, "temperature") != params.samplers.end();
  const bool greedy = tempered && params.temperature <= 0 && params.dynatemp_range <= 0;
  const bool mirostat = !greedy && params.mirostat > 0;
  for (const std::string& name : params.samplers) {
    // What only narrows the choice leaves the most likely token, and Mirostat narrows it in its own way.
    if ((greedy || mirostat) && name != "penalties" && name != "dry") continue;
    if (auto failure = sampler->AddLink(name, vocab, params, context_size)) return *failure;
  }
  if (greedy) {
    // Nothing changes the logits: plain argmax is all there is to do.
    if (sampler->links_ == 0) sampler->chain_.reset();
    if (sampler->chain_) sampler->Add(llama_sampler_init_greedy());
    return sampler;
  }
  if (!mirostat) {
    sampler->Add(llama_sampler_init_dist(seed));
    return sampler;
  }
  if (auto failure = sampler->AddLink("temperature", vocab, params, context_size)) return *failure;
  sampler->Add(params.mirostat == 1
                   ? llama_sampler_init_mirostat(n_vocab, seed, params.mirostat_tau, params.mirostat_eta, 100)
                   : llama_sampler_init_mirostat_v2(seed, params.mirostat_tau, params.mirostat_eta));
  return sampler;
}

void Sampler::Add(llama_sampler* link) {
  llama_sampler_chain_add(chain_.get(), link);
  ++links_;
}

// A link that would change nothing is left out: each one costs a pass over the candidates.
std::optional<Failure> Sampler::AddLink(const std::string& name, const llama_vocab* vocab, const SamplingParams& params,
                                        uint32_t context_size) {
  const auto min_keep = static_cast<size_t>(params.min_keep);
  const auto window = [&](int32_t last_n) { return last_n < 0 ? context_size : static_cast<uint32_t>(last_n); };
  if (name == "penalties") {
    const uint32_t last_n = window(params.repeat_last_n);
    if (last_n == 0 ||
        (params.repeat_penalty == 1.0f && params.frequency_penalty == 0.0f && params.presence_penalty == 0.0f)) {
      return std::nullopt;
    }
    lookback_ = std::max(lookback_, last_n);
    Add(llama_sampler_init_penalties(static_cast<int32_t>(n_vocab_), static_cast<int32_t>(last_n),
                                     params.repeat_penalty, params.frequency_penalty, params.presence_penalty));
  } else if (name == "dry") {
    const uint32_t last_n = window(params.dry_penalty_last_n);
    if (last_n == 0 || params.dry_multiplier == 0.0f) return std::nullopt;
    lookback_ = std::max(lookback_, last_n);
    std::vector<const char*> breakers;
    for (const std::string& breaker : params.dry_sequence_breakers) breakers.push_back(breaker.c_str());
    Add(llama_sampler_init_dry(vocab, params.dry_multiplier, params.dry_base, params.dry_allowed_length,
                               static_cast<int32_t>(last_n), breakers.data(), breakers.size()));
  } else if (name == "top_n_sigma") {
    if (params.top_n_sigma > 0.0f) Add(llama_sampler_init_top_n_sigma(params.top_n_sigma));
  } else if (name == "top_k") {
    if (params.top_k <= 0) return std::nullopt;
    if (links_ == 0 && params.top_k <= kMostPreselected) preselect_ = static_cast<uint32_t>(params.top_k);
    Add(llama_sampler_init_top_k(params.top_k));
  } else if (name == "typ_p") {
    if (params.typical_p < 1.0f) Add(llama_sampler_init_typical(params.typical_p, min_keep));
  } else if (name == "top_p") {
    if (params.top_p < 1.0f) Add(llama_sampler_init_top_p(params.top_p, min_keep));
  } else if (name == "min_p") {
    if (params.min_p > 0.0f) Add(llama_sampler_init_min_p(params.min_p, min_keep));
  } else if (name == "xtc") {
    if (params.xtc_probability > 0.0f) {
      // Numbers of its own: with dist's, which token is drawn would hang on whether others are dropped.
      const uint32_t seed = ~seed_ == LLAMA_DEFAULT_SEED ? 1 : ~seed_;
      Add(llama_sampler_init_xtc(params.xtc_probability, params.xtc_threshold, min_keep, seed));
    }
  } else if (name == "temperature") {
    if (params.dynatemp_range > 0.0f || params.temperature < kLeastPlainTemperature) Add(MakeShift());
    if (params.dynatemp_range > 0.0f) {
      Add(llama_sampler_init_temp_ext(params.temperature, params.dynatemp_range, params.dynatemp_exponent));
    } else {
      Add(llama_sampler_init_temp(params.temperature));
    }
  } else {
    return Invalid("samplers", "There is no sampler '" + name + "'.");
  }
  return std::nullopt;
}

std::unique_ptr<Sampler> Sampler::Greedy(uint32_t vocab_size) {
  auto sampler = std::unique_ptr<Sampler>(new Sampler);
  sampler->n_vocab_ = vocab_size;
  return sampler;
}

llama_token Sampler::MostLikely(const float* logits, TokenBits allowed, std::span<const llama_token> banned,
                                Candidates& scratch) const {
  const llama_token best = FirstOfLargest({logits, n_vocab_}, allowed);
  if (!std::ranges::binary_search(banned, best)) return best;
  SelectLargest({logits, n_vocab_}, allowed, static_cast<uint32_t>(banned.size()) + 1, scratch);
  for (const llama_token_data& candidate : scratch) {
    if (!std::ranges::binary_search(banned, candidate.id)) return candidate.id;
  }
  return best;
}

bool Sampler::Collect(const float* logits, TokenBits allowed, std::span<const llama_token> banned,
                      Candidates& scratch) const {
  if (preselect_ > 0) {
    SelectLargest({logits, n_vocab_}, allowed, preselect_ + static_cast<uint32_t>(banned.size()), scratch);
    if (!banned.empty()) {
      std::erase_if(scratch, [&](const auto& each) { return std::ranges::binary_search(banned, each.id); });
      if (scratch.size() > preselect_) scratch.resize(preselect_);
    }
    return !scratch.empty();
  }
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
  if (std::isnan(sum)) {
    scratch.clear();
    return false;
  }
  size_t left = scratch.size();
  for (const llama_token token : banned) {
    const auto at = std::ranges::lower_bound(scratch, token, {}, &llama_token_data::id);
    if (at == scratch.end() || at->id != token) continue;
    at->logit = -std::numeric_limits<float>::infinity();
    --left;
  }
  return left > 0;
}

llama_token Sampler::Sample(const float* logits, TokenBits allowed, Candidates& scratch) {
  const std::span<const llama_token> banned =
      never_ends_ || accepted_ < min_tokens_ ? std::span<const llama_token>(ends_) : std::span<const llama_token>();
  if (!chain_) return MostLikely(logits, allowed, banned, scratch);
  if (!Collect(logits, allowed, banned, scratch) && (banned.empty() || !Collect(logits, allowed, {}, scratch))) {
    return LLAMA_TOKEN_NULL;
  }
  // Preselected ones are sorted, and no more than top_k wants: that link has nothing left to do.
  llama_token_data_array array = {scratch.data(), scratch.size(), -1, preselect_ > 0};
  llama_sampler_apply(chain_.get(), &array);
  if (array.selected < 0 || static_cast<size_t>(array.selected) >= array.size) return LLAMA_TOKEN_NULL;
  const llama_token_data& chosen = array.data[array.selected];
  return std::isfinite(chosen.logit) ? chosen.id : LLAMA_TOKEN_NULL;
}

void Sampler::See(llama_token token) {
  if (chain_) llama_sampler_accept(chain_.get(), token);
}

void Sampler::Accept(llama_token token) {
  See(token);
  ++accepted_;
}

}  // namespace tokenloop
