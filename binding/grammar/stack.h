// Call stacks of the matcher: immutable, shared linked lists. Pure. The count of references is atomic, so stacks may be
// shared by states on different threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "grammar/program.h"

namespace tokenloop::grammar {

// Where a kReturn goes on. Null is the bottom: the grammar's own end.
class Stack {
 public:
  // `count` of the frames that are not a repetition's. Their `point` is the node after the call; a repetition's is its
  // kLoop node, and `count` the number of turns complete before the one that is under way.
  static constexpr uint32_t kCall = UINT32_MAX;
  // Counts of repetitions that are, for as many bytes as are looked at, out of reach of their bounds: below the minimum
  // whatever comes, and neither below the minimum nor at the maximum. Only masks use them.
  static constexpr uint32_t kFarBelow = UINT32_MAX - 1;
  static constexpr uint32_t kFarWithin = UINT32_MAX - 2;

  struct Frame {
    mutable std::atomic<uint32_t> references;
    NodeId point;
    uint32_t count;
    uint64_t hash;  // of the whole stack
    const Frame* parent;
  };

  Stack() = default;
  Stack(const Stack& other) : top_(other.top_) { Take(top_); }
  Stack(Stack&& other) noexcept : top_(std::exchange(other.top_, nullptr)) {}
  Stack& operator=(Stack other) noexcept {
    std::swap(top_, other.top_);
    return *this;
  }
  ~Stack() { Drop(top_); }

  Stack Push(NodeId point, uint32_t count) const;
  Stack Pop() const {
    Take(top_->parent);
    return Stack(top_->parent);
  }

  bool empty() const { return top_ == nullptr; }
  const Frame& top() const { return *top_; }
  const Frame* frame() const { return top_; }
  uint64_t hash() const { return top_ == nullptr ? 0 : top_->hash; }
  friend bool operator==(const Stack& x, const Stack& y);

 private:
  explicit Stack(const Frame* owned) : top_(owned) {}
  static void Take(const Frame* frame) {
    if (frame != nullptr) frame->references.fetch_add(1, std::memory_order_relaxed);
  }
  static void Drop(const Frame* frame);

  const Frame* top_ = nullptr;
};

inline uint64_t MixHash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

}  // namespace tokenloop::grammar
