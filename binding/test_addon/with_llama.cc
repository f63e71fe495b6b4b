#include "test_addon/with_llama.h"

#include <span>
#include <vector>

#include "common.h"
#include "sampling/largest.h"
#include "sampling/logprobs.h"

namespace tokenloop {

namespace {

std::span<const float> Logits(const Napi::Value& value) {
  const auto array = value.As<Napi::Float32Array>();
  return {array.Data(), array.ElementLength()};
}

// A BigUint64Array, or undefined for all.
TokenBits Allowed(const Napi::Value& value) {
  if (value.IsUndefined()) return {};
  const auto array = value.As<Napi::BigUint64Array>();
  return {array.Data(), array.ElementLength()};
}

}  // namespace

Napi::Value FirstOfLargestOf(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), FirstOfLargest(Logits(info[0]), Allowed(info[1])));
}

Napi::Value SelectLargestOf(const Napi::CallbackInfo& info) {
  std::vector<llama_token_data> largest;
  SelectLargest(Logits(info[0]), Allowed(info[2]), info[1].As<Napi::Number>().Uint32Value(), largest);
  Napi::Array ids = Napi::Array::New(info.Env());
  for (const llama_token_data& candidate : largest) ids.Set(ids.Length(), static_cast<double>(candidate.id));
  return ids;
}

Napi::Value LogSumExpOf(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), LogSumExp(Logits(info[0])));
}

// llama.cpp's own function for this is in a part of it that is not linked here.
const char* NameOf(common_sampler_type type) {
  switch (type) {
    case COMMON_SAMPLER_TYPE_PENALTIES:
      return "penalties";
    case COMMON_SAMPLER_TYPE_DRY:
      return "dry";
    case COMMON_SAMPLER_TYPE_TOP_N_SIGMA:
      return "top_n_sigma";
    case COMMON_SAMPLER_TYPE_TOP_K:
      return "top_k";
    case COMMON_SAMPLER_TYPE_TYPICAL_P:
      return "typ_p";
    case COMMON_SAMPLER_TYPE_TOP_P:
      return "top_p";
    case COMMON_SAMPLER_TYPE_MIN_P:
      return "min_p";
    case COMMON_SAMPLER_TYPE_XTC:
      return "xtc";
    case COMMON_SAMPLER_TYPE_TEMPERATURE:
      return "temperature";
    default:
      return "unknown";
  }
}

Napi::Value LlamaSamplingDefaults(const Napi::CallbackInfo& info) {
  const common_params_sampling defaults;
  Napi::Object object = Napi::Object::New(info.Env());
  object.Set("temperature", defaults.temp);
  object.Set("top_k", defaults.top_k);
  object.Set("top_p", defaults.top_p);
  object.Set("min_p", defaults.min_p);
  object.Set("typical_p", defaults.typ_p);
  object.Set("repeat_penalty", defaults.penalty_repeat);
  object.Set("frequency_penalty", defaults.penalty_freq);
  object.Set("presence_penalty", defaults.penalty_present);
  object.Set("repeat_last_n", defaults.penalty_last_n);
  object.Set("mirostat", defaults.mirostat);
  object.Set("mirostat_tau", defaults.mirostat_tau);
  object.Set("mirostat_eta", defaults.mirostat_eta);
  object.Set("top_n_sigma", defaults.top_n_sigma);
  object.Set("xtc_probability", defaults.xtc_probability);
  object.Set("xtc_threshold", defaults.xtc_threshold);
  object.Set("dynatemp_range", defaults.dynatemp_range);
  object.Set("dynatemp_exponent", defaults.dynatemp_exponent);
  object.Set("dry_multiplier", defaults.dry_multiplier);
  object.Set("dry_base", defaults.dry_base);
  object.Set("dry_allowed_length", defaults.dry_allowed_length);
  object.Set("dry_penalty_last_n", defaults.dry_penalty_last_n);
  object.Set("min_keep", defaults.min_keep);
  Napi::Array breakers = Napi::Array::New(info.Env());
  for (const std::string& breaker : defaults.dry_sequence_breakers) breakers.Set(breakers.Length(), breaker);
  object.Set("dry_sequence_breakers", breakers);
  Napi::Array samplers = Napi::Array::New(info.Env());
  for (const common_sampler_type type : defaults.samplers) samplers.Set(samplers.Length(), NameOf(type));
  object.Set("samplers", samplers);
  // LLAMA_DEFAULT_SEED stands for "draw one", as -1 does in the option table.
  object.Set("seed", defaults.seed == LLAMA_DEFAULT_SEED ? -1.0 : static_cast<double>(defaults.seed));
  return object;
}

}  // namespace tokenloop
