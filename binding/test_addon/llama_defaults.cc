#include "test_addon/llama_defaults.h"

#include "common.h"

namespace tokenloop {

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
  // LLAMA_DEFAULT_SEED stands for "draw one", as -1 does in the option table.
  object.Set("seed", defaults.seed == LLAMA_DEFAULT_SEED ? -1.0 : static_cast<double>(defaults.seed));
  return object;
}

}  // namespace tokenloop
