// One answer on its way through the engine. A request for n answers is n of these with one id and one prompt: the first
// to be admitted computes the prompt, the others share its cells (prefix reuse).
//
// Cancel table (state × what happens). Every cell ends in exactly one last event; test/engine/cancel.test.ts goes
// through it.
//
//   state       | cancel(id)                          | engine stops        | failure
//   ------------+-------------------------------------+---------------------+-------------------------------------
//   preparing   | leaves at the loop's next turn; the | finished(cancelled) | failed: template or prompt error
//               | prompt thread's result is dropped   |                     |
//   waiting     | leaves at the loop's next turn      | finished(cancelled) | -
//   prefilling  | the running decode is aborted if    | decode aborted,     | failed: llama_decode failed, and only
//               | all its requests are cancelled (CPU)| finished(cancelled) | the requests of that batch
//               | else leaves before the next step    |                     |
//   decoding    | as prefilling                       | as prefilling       | as prefilling; also logits not numbers
//   finished    | no effect: the id is not live       | -                   | -
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/constraint.h"
#include "engine/types.h"
#include "llama.h"
#include "sampling/sampler.h"
#include "text/output_text.h"

namespace tokenloop {

using Clock = std::chrono::steady_clock;

enum class RequestState { kPreparing, kWaiting, kPrefilling, kDecoding, kFinished };

// What the prompt thread makes of a request, handed over whole: written before, read after the hand-over.
struct PreparedPrompt {
  std::vector<llama_token> tokens;
  std::vector<std::string> stops;  // the request's own and the format's
  std::unique_ptr<Sampler> sampler;
  std::shared_ptr<const CompiledGrammar> grammar;  // null: none
  std::optional<Failure> failure;
};

struct Request {
  Request(uint32_t request_id, uint32_t choice_index, std::shared_ptr<const RequestSpec> request_spec,
          std::shared_ptr<const std::atomic<bool>> cancellation_flag)
      : id(request_id),
        choice(choice_index),
        spec(std::move(request_spec)),
        cancellation(std::move(cancellation_flag)),
        submitted(Clock::now()) {}

  // Fixed at submission; read by any thread.
  const uint32_t id;      // admission id, common to the n answers of one request
  const uint32_t choice;  // 0..n-1
  const std::shared_ptr<const RequestSpec> spec;
  // Common to the n answers; set by any thread, never cleared.
  const std::shared_ptr<const std::atomic<bool>> cancellation;
  const Clock::time_point submitted;

  bool cancelled() const { return cancellation->load(std::memory_order_relaxed); }

  // Everything below belongs to the loop thread.
  RequestState state = RequestState::kPreparing;
  std::vector<llama_token> tokens;  // prompt, then what was generated
  uint32_t prompt_size = 0;
  uint32_t cached = 0;  // tokens whose KV cells this request holds; tokens[cached..] is pending
  llama_seq_id sequence = -1;
  uint32_t reused = 0;  // prompt tokens whose cells were there already when it was first admitted
  uint64_t admitted = 0;
  std::unique_ptr<Sampler> sampler;
  std::optional<Constraint> constraint;
  std::optional<OutputText> output;
  std::vector<std::string> stops;
  // Logprobs wait until the text of their token is out: what a stop string swallows has none.
  struct PendingLogprobs {
    std::string json;
    uint64_t end;  // bytes of text up to the end of its token
  };
  std::deque<PendingLogprobs> logprobs;
  uint64_t sampled_bytes = 0;
  uint64_t published_bytes = 0;
  Clock::time_point first_decode{};
  Clock::time_point first_token{};

  uint32_t generated() const { return static_cast<uint32_t>(tokens.size()) - prompt_size; }
  uint32_t pending() const { return static_cast<uint32_t>(tokens.size()) - cached; }
  bool holds_sequence() const { return sequence >= 0; }
};

}  // namespace tokenloop
