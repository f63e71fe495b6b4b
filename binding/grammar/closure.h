// The one step that the matcher and the masks share: from a place in the grammar to every place that waits for input.
// Pure; a Closure is a scratch pad of one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/program.h"
#include "grammar/stack.h"

namespace tokenloop::grammar {

struct Thread {
  NodeId node = 0;
  Stack stack;

  friend bool operator==(const Thread& x, const Thread& y) { return x.node == y.node && x.stack == y.stack; }
  uint64_t hash() const { return MixHash(stack.hash(), node + 1); }
};

class Closure {
 public:
  // A grammar may be ambiguous, but not beyond these.
  static constexpr size_t kMaxThreads = 2048;
  static constexpr size_t kMaxVisits = 32768;

  explicit Closure(const Program& program) : program_(program) {}

  void Begin();
  void Add(NodeId node, Stack stack);
  // As if a rule had just ended on this stack.
  void AddReturn(Stack stack);
  // What was added since Begin(), closed. Sorted, without doubles: equal sets are equal vectors.
  // False when it is too much.
  bool Finish(std::vector<Thread>& threads);
  // A return found the stack empty.
  bool reached_bottom() const { return reached_bottom_; }

 private:
  struct Item {
    NodeId node;
    uint32_t fresh;  // frames at the top that were pushed since the last byte
    Stack stack;
  };
  void Visit(NodeId node, uint32_t fresh, Stack stack);
  void Return(const Item& item);

  const Program& program_;
  bool Known(const Item& item);

  std::vector<Thread> waiting_;
  std::vector<Item> work_;
  std::vector<Item> seen_;
  // A hash table with linear probing over `seen_`: index + 1, or 0. Its size is a power of two.
  std::vector<uint32_t> table_;
  bool reached_bottom_ = false;
  bool too_many_ = false;
};

}  // namespace tokenloop::grammar
