// Which tokens a grammar allows next. Pure. One Masker serves all requests that share a grammar and a vocabulary, from
// any thread: its caches are behind a mutex, and it takes one request at a time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/local_automaton.h"
#include "grammar/matcher.h"
#include "grammar/vocabulary.h"

namespace tokenloop::grammar {

struct MaskLimits {
  size_t cached_masks = size_t{8} << 20;   // bytes of finished masks, one for each state; the least recent goes first
  size_t cached_parts = size_t{32} << 20;  // bytes of what masks are put together from; all go at once
};

class Masker {
 public:
  Masker(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const Vocabulary> vocabulary, MaskLimits limits = {});

  // Sets bit `id` of `mask` (vocabulary().words() words, bit id % 64 of word id / 64) exactly when a copy of `state`
  // would take AcceptToken(id, piece), or would overflow. It says nothing about the end: that is state.CanEnd().
  // False when the grammar is too ambiguous for that: then tokens may be missing, and none is wrong.
  bool Compute(const GrammarState& state, std::span<uint64_t> mask);

  // Sets the bits of the tokens below these nodes of the vocabulary that `state` takes, when what leads to the node is
  // read already.
  bool AddBelow(const GrammarState& state, std::vector<uint32_t> nodes, std::span<uint64_t> mask);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  // Bytes that the caches hold.
  size_t bytes() const;

 private:
  // Nodes visited for one mask: a few tenths of a second.
  static constexpr uint64_t kMaxSteps = 20'000'000;

  using Nodes = std::vector<uint32_t>;  // of the vocabulary

  // What is known about one place, with so many of the frames above it, before any byte.
  struct Place {
    LocalAutomaton::StateId start = LocalAutomaton::kDead;
    // The whole vocabulary, from this place.
    bool walked = false;
    bool too_open = false;  // more frames must be looked at
    std::vector<uint64_t> accepted;
    std::shared_ptr<Nodes> escapes;
  };
  // Threads that share what is below their upper frames.
  struct Task {
    std::vector<Thread> threads;
    std::vector<Thread> upper;  // the same, with the upper frames only
    Stack below;
    uint32_t calls;                     // that the upper frames may hold
    std::shared_ptr<const Nodes> from;  // null: the root
  };
  // A node on the way of WalkBeside.
  struct Beside {
    LocalAutomaton::StateId state;
    LocalAutomaton::StateId beside;  // the base's
    uint32_t horizon;                // texts of so many bytes do not tell the two apart
    uint32_t end;                    // of the node
  };
  struct Cached {
    GrammarState state;
    std::vector<uint64_t> mask;
    uint64_t hash;
  };

  bool Build(const GrammarState& state, std::span<uint64_t> mask);
  void MakeRoom();
  // False when there are too many.
  bool RunAll(std::vector<Task>& tasks, std::span<uint64_t> mask);
  void MarkTokens(const GrammarState& state, std::span<uint64_t> mask);
  void Run(Task& task, std::span<uint64_t> mask, std::vector<Task>& tasks);
  void AddTasks(const std::vector<Thread>& threads, uint32_t calls, const std::shared_ptr<const Nodes>& from,
                std::vector<Task>& tasks) const;
  void WalkRoot(Place& place);
  // As Walk from the root, but starting from what is known of a place that differs from this one in counters only.
  void WalkBeside(const Place& base, Place& place);
  // Everything below `node`, which the automaton reads from `start`.
  void Walk(uint32_t node, LocalAutomaton::StateId start, std::span<uint64_t> mask, Nodes& escapes);
  void Clear(uint32_t first_token, uint32_t last_token, std::span<uint64_t> mask) const;
  // Clears those of more characters.
  void ClearLong(uint32_t first_token, uint32_t last_token, uint32_t characters, std::span<uint64_t> mask) const;
  // Below `node`, everything that `state` (relaxed to the node's height) reads is allowed.
  bool TakesAll(const Vocabulary::Node& node, LocalAutomaton::StateId state);
  void Mark(uint32_t first_token, uint32_t last_token, std::span<uint64_t> mask) const;
  bool tired() const { return steps_ + 10 * (automaton_.work() - work_before_) > kMaxSteps; }

  const std::shared_ptr<const Grammar> grammar_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const MaskLimits limits_;

  mutable std::mutex mutex_;
  Closure closure_;
  LocalAutomaton automaton_;
  std::unordered_map<LocalAutomaton::StateId, Place> places_;
  size_t place_bytes_ = 0;
  uint64_t steps_ = 0;                         // of the mask that is being made
  uint64_t work_before_ = 0;                   // automaton_.work() before it
  std::vector<LocalAutomaton::StateId> path_;  // of Walk, by depth
  std::vector<Beside> beside_;                 // of WalkBeside, by depth
  std::list<Cached> masks_;                    // the most recent first
  std::unordered_multimap<uint64_t, std::list<Cached>::iterator> by_hash_;
};

}  // namespace tokenloop::grammar
