#include "bridge/requests.h"

#include <limits>
#include <utility>

#include "bridge/fields.h"

namespace tokenloop {
namespace {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr double kFloatMax = std::numeric_limits<float>::max();
// llama.cpp's tokenizer counts bytes in an int32.
constexpr size_t kPromptBytes = size_t{1} << 30;

}  // namespace

Result<EngineConfig> ReadLoadOptions(const Napi::Value& value) {
  Fields fields(value);
  EngineConfig config;
  config.model = fields.String("model");
  config.context_size = static_cast<uint32_t>(fields.Integer("contextSize", 0, 1 << 24));
  config.parallel = static_cast<uint32_t>(fields.Integer("parallel", 1, 256));
  config.batch_size = static_cast<uint32_t>(fields.Integer("batchSize", 1, 1 << 16));
  config.micro_batch_size = static_cast<uint32_t>(fields.Integer("microBatchSize", 1, 1 << 16));
  config.threads = static_cast<uint32_t>(fields.Integer("threads", 0, 512));
  config.threads_batch = static_cast<uint32_t>(fields.Integer("threadsBatch", 0, 512));
  config.gpu_layers = static_cast<int32_t>(fields.Integer("gpuLayers", -1, 100000));
  config.queue_size = static_cast<uint32_t>(fields.Integer("queueSize", 0, 1000000));
  config.step_target_ms = fields.Number("stepTargetMs", 0.001, 60000);
  config.prefix_cache = fields.Boolean("prefixCache");
  const int64_t sampling_threads = fields.Integer("samplingThreads", -1, 64);
  if (sampling_threads >= 0) config.sampling_threads = static_cast<uint32_t>(sampling_threads);
  config.stream_buffer = static_cast<uint32_t>(fields.Integer("streamBufferBytes", 4096, 1 << 30));
  config.stall_timeout_ms = static_cast<uint32_t>(fields.Integer("stallTimeoutMs", 0, kInt32Max));
  config.draft_tokens = static_cast<uint32_t>(fields.Integer("draftTokens", 0, 64));
  config.draft_model = fields.String("draftModel");
  if (!config.draft_model.empty() && config.draft_tokens == 0)
    fields.Refuse("draftTokens", "above 0 with 'draftModel'");
  config.mmap = fields.Boolean("mmap");
  config.mlock = fields.Boolean("mlock");
  const std::string flash_attention = fields.String("flashAttention");
  if (flash_attention == "on") {
    config.flash_attention = FlashAttention::kOn;
  } else if (flash_attention == "off") {
    config.flash_attention = FlashAttention::kOff;
  } else if (flash_attention != "auto") {
    fields.Refuse("flashAttention", "auto, on or off");
  }
  config.chat_template = fields.String("chatTemplate");
  if (fields.failure()) return *fields.failure();
  return config;
}

Result<RequestSpec> ReadRequest(const Napi::Value& value) {
  Fields fields(value);
  RequestSpec spec;
  spec.messages = fields.OptionalString("messages");
  spec.prompt = fields.OptionalString("prompt");
  spec.prompt_tokens = fields.OptionalTokens("promptTokens");
  if (spec.messages.has_value() + spec.prompt.has_value() + spec.prompt_tokens.has_value() != 1) {
    fields.Refuse("messages", "given, or else one of 'prompt' and 'promptTokens'");
  }
  if (spec.messages.value_or("").size() > kPromptBytes) fields.Refuse("messages", "shorter than 1 GiB");
  if (spec.prompt.value_or("").size() > kPromptBytes) fields.Refuse("prompt", "shorter than 1 GiB");
  spec.max_tokens = static_cast<int32_t>(fields.Integer("maxTokens", -1, kInt32Max));
  spec.stop = fields.NonEmptyStrings("stop");
  spec.grammar = fields.String("grammar");
  spec.logprobs = static_cast<int32_t>(fields.Integer("logprobs", -1, 20));
  spec.n = static_cast<uint32_t>(fields.Integer("n", 1, 128));
  spec.cache_prompt = fields.Boolean("cachePrompt");
  spec.cache_key = fields.String("cacheKey");
  spec.priority = static_cast<int32_t>(fields.Integer("priority", -kInt32Max, kInt32Max));
  spec.timeout_ms = static_cast<uint32_t>(fields.Integer("timeoutMs", 0, kInt32Max));
  spec.predict_ms = static_cast<uint32_t>(fields.Integer("predictMs", 0, kInt32Max));
  Fields sampling(fields.Object("sampling"));
  SamplingParams& params = spec.sampling;
  params.temperature = static_cast<float>(sampling.Number("temperature", 0, kFloatMax));
  params.top_k = static_cast<int32_t>(sampling.Integer("top_k", 0, kInt32Max));
  params.top_p = static_cast<float>(sampling.Number("top_p", 0, 1));
  params.min_p = static_cast<float>(sampling.Number("min_p", 0, 1));
  params.typical_p = static_cast<float>(sampling.Number("typical_p", 0, 1));
  params.repeat_penalty = static_cast<float>(sampling.Number("repeat_penalty", 1e-6, kFloatMax));
  params.frequency_penalty = static_cast<float>(sampling.Number("frequency_penalty", -kFloatMax, kFloatMax));
  params.presence_penalty = static_cast<float>(sampling.Number("presence_penalty", -kFloatMax, kFloatMax));
  params.repeat_last_n = static_cast<int32_t>(sampling.Integer("repeat_last_n", -1, 1 << 20));
  params.mirostat = static_cast<int32_t>(sampling.Integer("mirostat", 0, 2));
  params.mirostat_tau = static_cast<float>(sampling.Number("mirostat_tau", 0, kFloatMax));
  params.mirostat_eta = static_cast<float>(sampling.Number("mirostat_eta", 0, kFloatMax));
  params.top_n_sigma = static_cast<float>(sampling.Number("top_n_sigma", -1, kFloatMax));
  params.xtc_probability = static_cast<float>(sampling.Number("xtc_probability", 0, 1));
  params.xtc_threshold = static_cast<float>(sampling.Number("xtc_threshold", 0, 1));
  params.dynatemp_range = static_cast<float>(sampling.Number("dynatemp_range", 0, kFloatMax));
  params.dynatemp_exponent = static_cast<float>(sampling.Number("dynatemp_exponent", 0, kFloatMax));
  params.dry_multiplier = static_cast<float>(sampling.Number("dry_multiplier", 0, kFloatMax));
  params.dry_base = static_cast<float>(sampling.Number("dry_base", 1, kFloatMax));
  params.dry_allowed_length = static_cast<int32_t>(sampling.Integer("dry_allowed_length", 0, 1 << 20));
  params.dry_penalty_last_n = static_cast<int32_t>(sampling.Integer("dry_penalty_last_n", -1, 1 << 20));
  params.min_keep = static_cast<int32_t>(sampling.Integer("min_keep", 0, kInt32Max));
  params.dry_sequence_breakers = sampling.NonEmptyStrings("dry_sequence_breakers");
  params.samplers = sampling.NonEmptyStrings("samplers");
  params.ignore_eos = sampling.Boolean("ignore_eos");
  params.min_tokens = static_cast<int32_t>(sampling.Integer("min_tokens", 0, kInt32Max));
  const int64_t seed = sampling.Integer("seed", -1, std::numeric_limits<uint32_t>::max());
  if (seed >= 0) params.seed = static_cast<uint32_t>(seed);
  params.logit_bias = sampling.BiasPairs("logit_bias");
  if (fields.failure()) return *fields.failure();
  if (sampling.failure()) return *sampling.failure();
  return spec;
}

}  // namespace tokenloop
