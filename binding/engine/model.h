// A loaded model with its context: the RAII owner of everything that llama.cpp hands out. Created on a load thread,
// then used by the loop thread (context) and the prompt thread (vocabulary, templates), freed when both are joined.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chat/templates.h"
#include "engine/decoder.h"
#include "engine/draft_source.h"
#include "engine/types.h"
#include "ggml-cpu.h"
#include "llama.h"

namespace tokenloop {

class Model : public Decoder {
 public:
  // Called on the loading thread with 0..1; returning false ends the load.
  using Progress = std::function<bool(float)>;

  // Blocks until the model is loaded. Fails with code "model_not_found", "invalid_model", "model_load_failed",
  // "load_cancelled", "invalid_chat_template" or "out_of_memory".
  static Result<std::unique_ptr<Model>> Load(const EngineConfig& config, const Progress& progress);

  ~Model() override;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelInfo& info() const override { return info_; }
  int32_t Decode(const llama_batch& batch) override;
  const float* Logits(int32_t index) override { return llama_get_logits_ith(context_.get(), index); }
  void SetAbortCallback(ggml_abort_callback callback, void* data) override {
    llama_set_abort_callback(context_.get(), callback, data);
  }
  void CopyCells(llama_seq_id from, llama_seq_id to, uint32_t begin, uint32_t end) override;
  void RemoveCells(llama_seq_id sequence, uint32_t from) override;
  uint32_t CountCells(llama_seq_id sequence) override;
  uint32_t FirstCell(llama_seq_id sequence) override;
  std::vector<uint8_t> SaveState(llama_seq_id sequence) override;
  bool LoadState(llama_seq_id sequence, std::span<const uint8_t> state) override;
  bool EndsGeneration(llama_token token) const override { return llama_vocab_is_eog(vocab(), token); }
  void AppendPiece(llama_token token, std::string& out, bool with_control = false) const override;

  llama_context* context() const { return context_.get(); }
  const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  // Null: nothing is guessed. Loop thread.
  DraftSource* draft_source() const { return draft_source_.get(); }
  const ChatTemplates& templates() const { return *templates_; }

  // Thread-safe. `text` must be shorter than 2 GiB.
  // Fails with code "invalid_request" where the vocabulary does not have one of them.
  std::optional<Failure> CheckTokens(const std::vector<llama_token>& tokens) const;
  std::vector<llama_token> Tokenize(const std::string& text, bool add_special, bool parse_special) const;
  // The pieces of one prompt, control tokens parsed; beginning and end are marked once, around the whole.
  std::vector<llama_token> TokenizePieces(const std::vector<std::string>& pieces) const;

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
  std::unique_ptr<DraftSource> draft_source_;
  ModelInfo info_;
};

}  // namespace tokenloop
