// A loaded model with its context: the RAII owner of everything that llama.cpp hands out. Created on a load thread,
// then used by the loop thread (context) and the prompt thread (vocabulary, templates), freed when both are joined.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chat/templates.h"
#include "engine/types.h"
#include "ggml-cpu.h"
#include "llama.h"

namespace tokenloop {

struct ModelInfo {
  std::string description;
  std::string name;
  std::string chat_template;
  uint64_t parameters = 0;
  uint64_t size = 0;
  uint32_t vocab_size = 0;
  uint32_t training_context = 0;
  uint32_t context_size = 0;
  uint32_t parallel = 0;
  uint32_t sequences = 0;  // that the context can hold: running and kept ones
  uint32_t batch_size = 0;
  uint32_t micro_batch_size = 0;
};

class Model {
 public:
  // Called on the loading thread with 0..1; returning false ends the load.
  using Progress = std::function<bool(float)>;

  // Blocks until the model is loaded. Fails with code "model_not_found", "invalid_model", "model_load_failed",
  // "load_cancelled", "invalid_chat_template" or "out_of_memory".
  static Result<std::unique_ptr<Model>> Load(const EngineConfig& config, const Progress& progress);

  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelInfo& info() const { return info_; }
  llama_context* context() const { return context_.get(); }
  const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  const ChatTemplates& templates() const { return *templates_; }

  // Thread-safe. `text` must be shorter than 2 GiB.
  std::vector<llama_token> Tokenize(const std::string& text, bool add_special, bool parse_special) const;
  // The pieces of one prompt, control tokens parsed; beginning and end are marked once, around the whole.
  std::vector<llama_token> TokenizePieces(const std::vector<std::string>& pieces) const;
  // Appends the bytes that a token stands for; control tokens stand for none, unless `with_control` asks for their
  // names.
  void AppendPiece(llama_token token, std::string& out, bool with_control = false) const;

 private:
  struct ModelDeleter {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  struct ContextDeleter {
    void operator()(llama_context* context) const { llama_free(context); }
  };
  struct PoolDeleter {
    void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
  };

  Model() = default;
  Result<bool> CreateContext(const EngineConfig& config);

  // Destroyed in reverse order: context before thread pools before model.
  std::unique_ptr<llama_model, ModelDeleter> model_;
  std::unique_ptr<ChatTemplates> templates_;
  std::unique_ptr<ggml_threadpool, PoolDeleter> pool_;
  std::unique_ptr<ggml_threadpool, PoolDeleter> pool_batch_;
  std::unique_ptr<llama_context, ContextDeleter> context_;
  ModelInfo info_;
};

}  // namespace tokenloop
