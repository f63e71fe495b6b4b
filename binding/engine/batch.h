// The arrays of one llama_decode, filled anew for each step. Loop thread.
#pragma once

#include <cstdint>
#include <vector>

#include "llama.h"

namespace tokenloop {

class Batch {
 public:
  explicit Batch(uint32_t capacity)
      : tokens_(capacity),
        positions_(capacity),
        sequence_counts_(capacity, 1),
        sequences_(capacity),
        sequence_pointers_(capacity),
        outputs_(capacity) {
    for (uint32_t i = 0; i < capacity; ++i) sequence_pointers_[i] = &sequences_[i];
  }
  // The arrays point into each other, and moving a vector leaves its elements where they are.
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;

  void Clear() { size_ = 0; }
  // Returns its index. There must be room.
  int32_t Add(llama_token token, uint32_t position, llama_seq_id sequence, bool output) {
    tokens_[size_] = token;
    positions_[size_] = static_cast<llama_pos>(position);
    sequences_[size_] = sequence;
    outputs_[size_] = output ? 1 : 0;
    return static_cast<int32_t>(size_++);
  }
  size_t size() const { return size_; }

  llama_batch View() {
    return {static_cast<int32_t>(size_), tokens_.data(), nullptr, positions_.data(), sequence_counts_.data(),
            sequence_pointers_.data(),   outputs_.data()};
  }

 private:
  size_t size_ = 0;
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<int32_t> sequence_counts_;
  std::vector<llama_seq_id> sequences_;
  std::vector<llama_seq_id*> sequence_pointers_;
  std::vector<int8_t> outputs_;
};

}  // namespace tokenloop
