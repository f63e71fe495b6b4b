// Where guesses of the next tokens come from (speculative decoding). A guess costs time, never text: the model confirms
// it, or it is dropped. Loop thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "engine/drafter.h"
#include "engine/request.h"

namespace tokenloop {

class DraftSource {
 public:
  virtual ~DraftSource() = default;
  // Fills `drafts` of answers that have one token pending.
  virtual void Draft(std::span<Request* const> requests) = 0;
  // So many of the answer's last drafts were right.
  virtual void Confirm(const Request& request, size_t drafted, size_t accepted) = 0;
  // The answer has ended.
  virtual void Forget(const Request& request) = 0;
};

// From the answer's own text and prompt.
class NgramDrafts : public DraftSource {
 public:
  explicit NgramDrafts(uint32_t most) : most_(most) {}

  void Draft(std::span<Request* const> requests) override {
    for (Request* request : requests) {
      request->drafts = drafters_.try_emplace(request->arrival, most_).first->second.Draft(request->tokens);
    }
  }
  void Confirm(const Request& request, size_t drafted, size_t accepted) override {
    const auto drafter = drafters_.find(request.arrival);
    if (drafter != drafters_.end()) drafter->second.Confirm(drafted, accepted);
  }
  void Forget(const Request& request) override { drafters_.erase(request.arrival); }

 private:
  const uint32_t most_;
  std::unordered_map<uint64_t, Drafter> drafters_;  // by arrival
};

}  // namespace tokenloop
