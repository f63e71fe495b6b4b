// Who gets how many tokens of the next llama_decode. A pure function over plain structs: no llama.h, no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tokenloop {

// One running request, as the scheduler sees it.
struct SequenceView {
  // Tokens that are known but not in the KV cache yet, at least 1.
  uint32_t pending = 1;
  // KV cells it holds: what preempting it would free.
  uint32_t cells = 0;
  // It has generated: its one pending token comes first. Otherwise its prompt is being processed.
  bool decoding = false;
  // Admission order; larger is younger.
  uint64_t admitted = 0;
};

struct StepLimits {
  uint32_t batch_size = 0;     // most tokens in one llama_decode
  uint32_t prompt_budget = 0;  // most prompt tokens, when several sequences share the step
  uint32_t alone_budget = 0;   // most prompt tokens, when one sequence is alone
  uint32_t free_cells = 0;     // KV cells that can be had without preempting
};

struct StepPlan {
  struct Share {
    size_t index;     // into the span given
    uint32_t tokens;  // 1..pending
  };
  std::vector<Share> shares;
  // Sequences whose cells must be taken back before the decode (they are computed again later), youngest first.
  std::vector<size_t> preempted;
};

// - Every decoding sequence gets its one token. Where cells are short, the youngest sequences are preempted, but never
//   the oldest one.
// - What is left of the batch, at most `prompt_budget` (`alone_budget` for a sequence that is alone), goes to those
// whose prompts are
//   being processed, shared evenly (water filling): a short prompt is never kept waiting by a long one.
// - No plan uses more than `free_cells` plus what its preemptions free.
// - If `shares` is empty and `sequences` is not, the oldest sequence is alone and the cache is full: it cannot go on.
StepPlan PlanStep(std::span<const SequenceView> sequences, const StepLimits& limits);

// Chooses `prompt_budget` so that a step stays near a target time. Owned by the loop thread.
class PromptBudget {
 public:
  static constexpr uint32_t kFloor = 16;  // prompts never starve

  explicit PromptBudget(double target_ms) : target_ms_(target_ms) {}

  // A step with `tokens` tokens took `ms`.
  void Observe(uint32_t tokens, double ms);
  // Prompt tokens for a step that also decodes `decoding` sequences, at least kFloor.
  uint32_t Tokens(uint32_t decoding) const;

 private:
  double target_ms_;
  double ms_per_token_ = 0;  // 0: nothing measured yet
};

}  // namespace tokenloop
