// From logits to tokens, for all answers of a step: grammar masks and sampler chains, spread over the cores that the
// decode leaves free. Loop thread; its helpers only touch what a job names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/decoder.h"
#include "engine/request.h"
#include "engine/workers.h"
#include "sampling/logprobs.h"

namespace tokenloop {

// What is sampled for one answer in one step.
struct SampleJob {
  Request* request = nullptr;
  // Behind the last token that was known, then behind each draft: the model's logits, null where it gave none.
  std::vector<const float*> logits;

  struct Sampled {
    llama_token token = LLAMA_TOKEN_NULL;
    std::optional<TokenLogprobs> logprobs;
    bool complete = false;  // the grammar is at its end
  };
  // One token, and one more for each draft that was confirmed. Sampler and grammar have accepted them.
  std::vector<Sampled> sampled;
  std::optional<Failure> failure;  // after the last of `sampled`
};

class SamplingStage {
 public:
  // `helpers`: threads beside the loop's own.
  SamplingStage(const Decoder& decoder, uint32_t helpers)
      : decoder_(decoder), workers_(helpers), scratch_(helpers + 1) {}

  // Starts to compute the masks that these answers will need: their grammars' states are known before the logits are.
  // Returns at once where there are helpers, else does nothing. Sample() must follow, or FinishMasks().
  void StartMasks(std::vector<Request*> requests);
  void FinishMasks();

  // Samples for all jobs. Drafts are confirmed as long as what is sampled is what was guessed, so the tokens are those
  // that would have been sampled one by one.
  void Sample(std::span<SampleJob> jobs);

 private:
  struct Scratch {
    Candidates candidates;
    std::string piece;
  };

  void SampleOne(SampleJob& job, Scratch& scratch) const;

  const Decoder& decoder_;
  Workers workers_;
  std::vector<Scratch> scratch_;
  bool masks_started_ = false;
  double job_us_ = 0;  // recent mean; 0: none yet
};

}  // namespace tokenloop
