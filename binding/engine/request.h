// One answer on its way through the engine. A request for n answers is n of these with one id and one prompt: the first
// to be admitted computes the prompt, the others share its cells (prefix reuse).
//
// Cancel table (state × what happens). Every cell ends in exactly one last event; test/engine/cancel.test.ts goes
// through it.
//
//   state       | cancel(id)                          | engine stops        | failure
//   ------------+-------------------------------------+---------------------+-------------------------------------
//   preparing   | leaves at the loop's next turn; the | finished(cancelled) | failed: template or prompt error,
//               | prompt thread's result is dropped   |                     | timeout
//   waiting     | leaves at the loop's next turn      | finished(cancelled) | failed: timeout
//   prefilling  | the running decode is aborted if    | decode aborted,     | failed: llama_decode failed, and only
//               | all its requests are cancelled (CPU)| finished(cancelled) | the requests of that batch; timeout
//               | else leaves before the next step    |                     |
//   decoding    | as prefilling                       | as prefilling       | as prefilling; also logits not numbers
//   paused      | leaves at the loop's next turn      | finished(cancelled) | failed: its reader stays away; timeout
//   finished    | no effect: the id is not live       | -                   | -
//
// "Paused" is no state of its own: an answer of any state is passed over while its reader is behind. A paused answer
// holds its cells until others need them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/constraint.h"
#include "engine/types.h"
#include "llama.h"
#include "sampling/sampler.h"
#include "text/answer_text.h"

namespace tokenloop {

using Clock = std::chrono::steady_clock;

inline double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

enum class RequestState { kPreparing, kWaiting, kPrefilling, kDecoding, kFinished };

// What the prompt thread makes of a request, handed over whole: written before, read after the hand-over.
struct PreparedPrompt {
  std::vector<llama_token> tokens;
  std::vector<std::string> stops;  // the request's own and the format's
  std::unique_ptr<Sampler> sampler;
  std::shared_ptr<const CompiledGrammar> grammar;  // null: none
  std::optional<Failure> failure;
};

// Common to the answers of one request: what its owner tells the loop while it runs.
struct RequestControl {
  // Set by any thread, never cleared.
  std::atomic<bool> cancelled{false};
  // Weight of the records that the reader has taken (RecordWeight). Grows on any thread.
  std::atomic<uint64_t> taken{0};
  // The loop waits for `taken` to grow, and wants to be woken.
  std::atomic<bool> awaited{false};

  // Weight of what was published. Loop thread.
  uint64_t published = 0;
};

// What a record with text counts for until it is read: its UTF-16 units, and what a chunk costs besides. The reader
// counts the same (src/native.ts).
constexpr uint64_t kRecordOverhead = 256;

struct Request {
  Request(uint32_t request_id, uint32_t choice_index, std::shared_ptr<const RequestSpec> request_spec,
          std::shared_ptr<RequestControl> request_control)
      : id(request_id),
        choice(choice_index),
        spec(std::move(request_spec)),
        control(std::move(request_control)),
        submitted(Clock::now()) {}

  // Fixed at submission; read by any thread.
  const uint32_t id;      // admission id, common to the n answers of one request
  const uint32_t choice;  // 0..n-1
  const std::shared_ptr<const RequestSpec> spec;
  const std::shared_ptr<RequestControl> control;
  const Clock::time_point submitted;

  bool cancelled() const { return control->cancelled.load(std::memory_order_relaxed); }

  // Everything below belongs to the loop thread.
  RequestState state = RequestState::kPreparing;
  std::vector<llama_token> tokens;  // prompt, then what was generated
  uint32_t prompt_size = 0;
  uint32_t cached = 0;  // tokens whose KV cells this request holds; tokens[cached..] is pending
  llama_seq_id sequence = -1;
  uint32_t reused = 0;  // prompt tokens whose cells were there already when it was first started
  bool started = false;
  uint64_t arrival = 0;  // order in which prompts were ready
  std::unique_ptr<Sampler> sampler;
  std::optional<Constraint> constraint;
  std::optional<AnswerText> text;
  std::vector<std::string> stops;
  std::vector<llama_token> drafts;  // guesses for this step
  uint32_t drafted = 0;
  uint32_t accepted = 0;
  bool ended_line = false;
  bool paused = false;
  uint64_t taken_seen = 0;           // what its reader had taken when it was last looked at while paused
  Clock::time_point paused_since{};  // or since the reader last took something
  Clock::time_point first_decode{};
  Clock::time_point first_token{};

  uint32_t generated() const { return static_cast<uint32_t>(tokens.size()) - prompt_size; }
  uint32_t pending() const { return static_cast<uint32_t>(tokens.size()) - cached; }
  bool holds_sequence() const { return sequence >= 0; }
  // Whether it is served before another one that waits or runs.
  bool before(const Request& other) const {
    return std::pair(spec->priority, arrival) < std::pair(other.spec->priority, other.arrival);
  }
};

}  // namespace tokenloop
