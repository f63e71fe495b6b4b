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
  // Order of service: smaller priorities first, then in order of arrival.
  int32_t priority = 0;
  uint64_t arrival = 0;
  // Its reader is behind: it gets nothing, and is the first to give its cells back.
  bool paused = false;
  // Tokens that were guessed to follow the pending one of a decoding sequence.
  uint32_t drafts = 0;
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
    uint32_t tokens;  // 1..pending, and drafts beyond that
  };
  std::vector<Share> shares;
  // Sequences whose cells must be taken back before the decode (they are computed again later), in that order.
  std::vector<size_t> preempted;
};

// - Every decoding sequence gets its one token. Where cells are short, others are preempted: paused ones, then the last
//   in the order of service, but never the first one that is not paused.
// - Then drafts, an equal number for each as far as the batch and the cells reach.
// - What is left of the batch, at most `prompt_budget` less the drafts (`alone_budget` for a sequence that is alone),
//   goes to those whose prompts are being processed: to the first priority, then to the next; within one priority it is
//   shared evenly (water filling), so a short prompt is never kept waiting by a long one.
// - No plan uses more than `free_cells` plus what its preemptions free.
// - If `shares` is empty although a sequence is not paused, that one is alone and the cache is full: it cannot go on.
StepPlan PlanStep(std::span<const SequenceView> sequences, const StepLimits& limits);

// Chooses `prompt_budget` so that a step stays near a target time. Owned by the loop thread.
//
// A step costs what its decoding sequences cost, nearly all of it for reading the weights once, and a little for each
// prompt token. The two are measured apart: a target that decoding alone uses up still leaves a quarter for prompts.
class PromptBudget {
 public:
  static constexpr uint32_t kFloor = 16;  // prompts never starve

  explicit PromptBudget(double target_ms) : target_ms_(target_ms) {}

  // A step with `prompt_tokens` prompt tokens beside `decoding` sequences took `ms`.
  void Observe(uint32_t prompt_tokens, uint32_t decoding, double ms);
  // Prompt tokens for a step that also decodes `decoding` sequences, at least kFloor.
  uint32_t Tokens(uint32_t decoding) const;

 private:
  double target_ms_;
  double decode_ms_ = 0;     // of a step that only decodes
  double ms_per_token_ = 0;  // of a prompt; 0: nothing measured yet
};

}  // namespace tokenloop
