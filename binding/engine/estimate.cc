#include "engine/estimate.h"

#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "engine/context_params.h"
#include "engine/process.h"
#include "fit.h"
#include "ggml-backend.h"

namespace tokenloop {
namespace {

// Never destroyed: threads may load until the very end.
std::shared_mutex& LoggerMutex() {
  static auto* mutex = new std::shared_mutex;
  return *mutex;
}

struct ModelDeleter {
  void operator()(llama_model* model) const { llama_model_free(model); }
};

using ModelPtr = std::unique_ptr<llama_model, ModelDeleter>;

// What the header says, without the weights; the parameters of a context depend on it. Null where llama.cpp refuses it.
ModelPtr Describe(const std::string& path, llama_model_params params) {
  params.no_alloc = true;
  params.load_mode = LLAMA_LOAD_MODE_NONE;
  return ModelPtr(llama_model_load_from_file(path.c_str(), params));
}

DeviceEstimate& Host(std::vector<DeviceEstimate>& estimates) {
  for (DeviceEstimate& estimate : estimates) {
    if (estimate.host) return estimate;
  }
  return estimates.emplace_back();
}

// Adds what one model takes to the devices that it uses; the CPU's memory comes last in llama.cpp's list. Returns the
// number of layers. Throws what llama.cpp throws.
uint32_t Add(const std::string& path, const llama_model* described, const llama_model_params& model,
             const llama_context_params& context, std::vector<DeviceEstimate>& estimates) {
  std::vector<ggml_backend_dev_t> devices;
  uint32_t layers = 0;
  uint32_t training_context = 0;
  uint32_t experts = 0;
  const common_device_memory_data_vec data = common_get_device_memory_data(
      path.c_str(), &model, &context, devices, layers, training_context, experts, GGML_LOG_LEVEL_ERROR);
  uint64_t weights = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    const bool host = i == devices.size();
    const std::string name = host ? "CPU" : ggml_backend_dev_name(devices[i]);
    DeviceEstimate* estimate = nullptr;
    for (DeviceEstimate& known : estimates) {
      if (known.name == name) estimate = &known;
    }
    if (estimate == nullptr) estimate = &estimates.emplace_back();
    estimate->name = name;
    estimate->host = host;
    estimate->total = static_cast<uint64_t>(data[i].total);
    estimate->free = static_cast<uint64_t>(data[i].free);
    estimate->use.weights += data[i].model;
    weights += data[i].model;
    estimate->use.cache += data[i].context;
    estimate->use.compute += data[i].compute;
  }
  // llama.cpp's account leaves out weights that it lays out anew for the CPU's instructions, and the row of logits that
  // it keeps for each sequence.
  MemoryUse& host = Host(estimates).use;
  const uint64_t size = llama_model_size(described);
  host.weights += size > weights ? size - weights : 0;
  const auto vocab_size = static_cast<uint64_t>(llama_vocab_n_tokens(llama_model_get_vocab(described)));
  host.output += context.n_seq_max * vocab_size * sizeof(float);
  return layers;
}

}  // namespace

LoggerHold::LoggerHold() { LoggerMutex().lock_shared(); }
LoggerHold::~LoggerHold() { LoggerMutex().unlock_shared(); }

Result<MemoryEstimate> EstimateMemory(const EngineConfig& config) {
  InitialiseProcess();
  const std::unique_lock lock(LoggerMutex());
  const LogCapture log;
  try {
    const auto refused = [&](const char* option, const std::string& path) {
      return Failure{"model_load_failed", 500, option, "llama.cpp could not read " + path + "\n" + log.text()};
    };
    const ModelPtr model = Describe(config.model, ModelParams(config));
    if (!model) return refused("model", config.model);
    const llama_context_params context = ContextParams(config, model.get());
    MemoryEstimate estimate;
    estimate.context_size = context.n_ctx;
    estimate.training_context = static_cast<uint32_t>(llama_model_n_ctx_train(model.get()));
    estimate.sequences = context.n_seq_max;
    estimate.layers = Add(config.model, model.get(), ModelParams(config), context, estimate.devices);
    if (!config.draft_model.empty()) {
      const ModelPtr draft = Describe(config.draft_model, DraftModelParams(config));
      if (!draft) return refused("draftModel", config.draft_model);
      Add(config.draft_model, draft.get(), DraftModelParams(config), DraftContextParams(config, context.n_ctx),
          estimate.devices);
    }
    return estimate;
  } catch (const std::exception& error) {
    return Failure{"model_load_failed", 500, "model", std::string("llama.cpp: ") + error.what() + "\n" + log.text()};
  }
}

}  // namespace tokenloop
