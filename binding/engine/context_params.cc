#include "engine/context_params.h"

#include <algorithm>

#include "common.h"

namespace tokenloop {
namespace {

constexpr uint32_t kDefaultContext = 8192;
constexpr uint32_t kContextPadding = 256;
// Most finished sequences whose cells are kept for reuse; cells are the tighter limit in practice.
constexpr uint32_t kKeptSequences = 64;
constexpr uint32_t kDraftBatch = 512;

llama_flash_attn_type FlashAttentionType(FlashAttention choice) {
  switch (choice) {
    case FlashAttention::kOn:
      return LLAMA_FLASH_ATTN_TYPE_ENABLED;
    case FlashAttention::kOff:
      return LLAMA_FLASH_ATTN_TYPE_DISABLED;
    case FlashAttention::kAuto:
      break;
  }
  return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

}  // namespace

llama_model_params ModelParams(const EngineConfig& config) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = config.gpu_layers;
  params.load_mode = config.mlock  ? (config.mmap ? LLAMA_LOAD_MODE_MMAP_MLOCK : LLAMA_LOAD_MODE_MLOCK)
                     : config.mmap ? LLAMA_LOAD_MODE_MMAP
                                   : LLAMA_LOAD_MODE_NONE;
  return params;
}

bool IsDivisible(const llama_model* model) { return !llama_model_is_recurrent(model) && !llama_model_is_hybrid(model); }

llama_context_params ContextParams(const EngineConfig& config, const llama_model* model) {
  const auto training = static_cast<uint32_t>(std::max(0, llama_model_n_ctx_train(model)));
  llama_context_params params = llama_context_default_params();
  params.n_ctx = config.context_size > 0 ? config.context_size
                 : training > 0          ? std::min(training, kDefaultContext)
                                         : kDefaultContext;
  // As llama.cpp pads it, but before the batch is held against it: its own order ends in an assertion.
  params.n_ctx = (params.n_ctx + kContextPadding - 1) / kContextPadding * kContextPadding;
  params.n_batch = std::min(config.batch_size, params.n_ctx);
  params.n_batch = std::max(params.n_batch, config.parallel);  // every sequence must get its token in one step
  params.n_ubatch = std::min(config.micro_batch_size, params.n_batch);
  // Kept sequences need ids of their own; llama.cpp asserts that a batch has room for an output of each.
  const uint32_t most = std::min<uint32_t>(params.n_ubatch, static_cast<uint32_t>(llama_max_parallel_sequences()));
  const uint32_t kept = config.prefix_cache && IsDivisible(model) ? kKeptSequences : 0;
  params.n_seq_max = std::max(config.parallel, std::min(config.parallel + kept, most));
  params.kv_unified = true;
  params.no_perf = true;
  params.flash_attn_type = FlashAttentionType(config.flash_attention);
  const auto cores = static_cast<uint32_t>(std::max(1, common_cpu_get_num_math()));
  const uint32_t threads = config.threads > 0 ? config.threads : cores;
  params.n_threads = static_cast<int32_t>(threads);
  params.n_threads_batch = static_cast<int32_t>(config.threads_batch > 0 ? config.threads_batch : threads);
  return params;
}

llama_model_params DraftModelParams(const EngineConfig& config) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = config.gpu_layers;
  params.load_mode = config.mmap ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
  return params;
}

llama_context_params DraftContextParams(const EngineConfig& config, uint32_t context_size) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = context_size;
  params.n_batch = std::max(kDraftBatch, config.parallel);
  params.n_ubatch = params.n_batch;
  params.n_seq_max = config.parallel;
  params.kv_unified = true;
  params.no_perf = true;
  params.n_threads = static_cast<int32_t>(std::max(1u, config.threads));
  params.n_threads_batch = params.n_threads;
  return params;
}

}  // namespace tokenloop
