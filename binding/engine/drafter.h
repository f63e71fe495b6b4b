// Guesses how a text goes on from how it went on before: prompts that are quoted, code that repeats, lists. Pure. One
// per answer, loop thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tokenloop {

// How many tokens to guess next: more after a right guess, fewer after a wrong one.
class DraftLength {
 public:
  uint32_t next(uint32_t most) const { return std::min(length_, most); }
  void Confirm(size_t drafted, size_t accepted) {
    if (drafted == 0) return;
    length_ = accepted == drafted ? std::min(2 * length_, kMost) : static_cast<uint32_t>(std::max<size_t>(accepted, 1));
  }

 private:
  static constexpr uint32_t kMost = 1024;
  uint32_t length_ = 4;
};

// Remembers where each run of kLong and of kShort tokens was seen last. A guess is what followed the last such run; the
// longer one counts. Constant time per token; 16 to 64 bytes of memory per token.
class Drafter {
 public:
  static constexpr size_t kLong = 6;
  static constexpr size_t kShort = 3;

  // `most`: tokens in one guess, at least 1.
  explicit Drafter(uint32_t most) : most_(most) {}

  // At most `most` tokens that may follow `tokens`: the same answer's as before, and what was added since.
  std::vector<int32_t> Draft(std::span<const int32_t> tokens);
  // So many of the last guess were right.
  void Confirm(size_t drafted, size_t accepted) { length_.Confirm(drafted, accepted); }

 private:
  using Index = std::unordered_map<uint64_t, uint32_t>;  // hash of a run -> where it ends

  // Takes in the tokens that came since the last call, and returns where the last run of `size` was seen before; 0:
  // never.
  uint32_t Follow(std::span<const int32_t> tokens, size_t size, Index& index) const;

  const uint32_t most_;
  DraftLength length_;
  size_t seen_ = 0;  // tokens whose runs are in the indices
  Index long_;
  Index short_;
};

}  // namespace tokenloop
