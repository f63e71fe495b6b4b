// A small model that guesses for a large one with the same vocabulary. Loaded on the load thread, then used by the loop
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/batch.h"
#include "engine/draft_source.h"
#include "engine/scheduler.h"
#include "engine/types.h"
#include "llama.h"

namespace tokenloop {

// Each running answer has a sequence in the small model's own KV cache. It follows the answer's text a bounded number
// of tokens per step, so that a long prompt does not hold up others; guesses begin when it has caught up.
class DraftModel : public DraftSource {
 public:
  // Fails with code "model_load_failed" (500) or "draft_model_mismatch" (400), param "draftModel".
  static Result<std::unique_ptr<DraftModel>> Load(const EngineConfig& config, const llama_vocab* vocab,
                                                  uint32_t context_size, ggml_threadpool* pool);

  void Draft(std::span<Request* const> requests) override;
  void Confirm(const Request& request, size_t drafted, size_t accepted) override;
  void Forget(const Request& request) override;

 private:
  // An answer's sequence.
  struct Slot {
    llama_seq_id sequence = -1;
    std::vector<llama_token> tokens;  // that have cells
    DraftLength length;
  };
  // An answer whose sequence has all but its last token, in this step.
  struct Guess {
    Request* request;
    Slot* slot;
    int32_t output = -1;  // index in the batch
  };
  struct ModelDeleter {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  struct ContextDeleter {
    void operator()(llama_context* context) const { llama_free(context); }
  };

  explicit DraftModel(uint32_t most) : most_(most), budget_(0), batch_(1) {}
  Slot* FindSlot(const Request& request);
  bool CatchUp(Request& request, Slot& slot, uint32_t& room);
  bool Decode();
  void Reset();

  const uint32_t most_;
  std::unique_ptr<llama_model, ModelDeleter> model_;
  std::unique_ptr<llama_context, ContextDeleter> context_;
  uint32_t vocab_size_ = 0;
  PromptBudget budget_;
  Batch batch_;
  std::vector<llama_seq_id> free_sequences_;
  std::unordered_map<uint64_t, Slot> slots_;  // by arrival
};

}  // namespace tokenloop
