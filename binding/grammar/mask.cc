#include "grammar/mask.h"

#include <algorithm>

namespace tokenloop::grammar {

namespace {

// Frames that a place may hold. More make it know more and serve fewer states.
constexpr uint32_t kMaxFrames = 8;
constexpr uint32_t kMaxCalls = 3;
// Above this many nodes where the real stack decides, one frame more is looked at.
constexpr size_t kTooOpen = 6000;
// Above this many, an ambiguous grammar makes the same walk over and over.
constexpr size_t kMaxTasks = 2000;

}  // namespace

Masker::Masker(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const Vocabulary> vocabulary, MaskLimits limits)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      limits_(limits),
      closure_(grammar_->program()),
      automaton_(grammar_->program()) {
  path_.resize(size_t{vocabulary_->nodes()[0].height} + 1);
  base_path_ = path_;
}

size_t Masker::bytes() const {
  const std::lock_guard lock(mutex_);
  return automaton_.bytes() + place_bytes_ + masks_.size() * vocabulary_->words() * sizeof(uint64_t);
}

void Masker::Compute(const GrammarState& state, std::span<uint64_t> mask) {
  const std::lock_guard lock(mutex_);
  const uint64_t hash = state.hash();
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry) {
    if (!(entry->second->state == state)) continue;
    masks_.splice(masks_.begin(), masks_, entry->second);
    std::copy(entry->second->mask.begin(), entry->second->mask.end(), mask.begin());
    return;
  }
  Build(state, mask);
  masks_.push_front({state, {mask.begin(), mask.end()}, hash});
  by_hash_.emplace(hash, masks_.begin());
  const size_t each =
      vocabulary_->words() * sizeof(uint64_t) + sizeof(Cached) + state.threads().size() * sizeof(Thread);
  while (masks_.size() > 1 && masks_.size() * each > limits_.cached_masks) {
    const auto oldest = std::prev(masks_.end());
    const auto [begin, end] = by_hash_.equal_range(oldest->hash);
    for (auto entry = begin; entry != end; ++entry) {
      if (entry->second != oldest) continue;
      by_hash_.erase(entry);
      break;
    }
    masks_.erase(oldest);
  }
}

void Masker::Build(const GrammarState& state, std::span<uint64_t> mask) {
  std::fill(mask.begin(), mask.end(), 0);
  if (automaton_.bytes() + place_bytes_ > limits_.cached_parts) {
    places_.clear();
    automaton_.Clear();
    place_bytes_ = 0;
  }
  MarkTokens(state, mask);
  std::vector<Task> tasks;
  for (const Thread& thread : state.threads()) {
    if (grammar_->program().nodes[thread.node].kind == NodeKind::kMatch) tasks.push_back({thread, nullptr});
  }
  for (size_t done = 0; !tasks.empty(); ++done) {
    if (done > kMaxTasks) {
      Slow(state, mask);
      return;
    }
    const Task task = std::move(tasks.back());
    tasks.pop_back();
    Run(task, mask, tasks);
  }
}

// Tokens that the grammar names by their ids.
void Masker::MarkTokens(const GrammarState& state, std::span<uint64_t> mask) {
  const auto set = [&](uint32_t id) { mask[id / 64] |= uint64_t{1} << (id % 64); };
  std::vector<Thread> after;
  for (const Thread& thread : state.threads()) {
    const Node& node = grammar_->program().nodes[thread.node];
    if (node.kind != NodeKind::kToken && node.kind != NodeKind::kNotToken) continue;
    closure_.Begin();
    closure_.Add(node.next, thread.stack);
    if (!closure_.Finish(after) || (after.empty() && !closure_.reached_bottom())) continue;
    if (node.kind == NodeKind::kToken) {
      if (node.a < vocabulary_->size()) set(node.a);
      continue;
    }
    for (uint32_t id = 0; id < vocabulary_->size(); ++id) {
      if (id != node.a) set(id);
    }
  }
}

// The place of a thread with its frames up to `calls` calls, and what of its stack is left. `whole`: nothing.
Masker::Place& Masker::PlaceOf(const Thread& thread, uint32_t calls, Stack& below, bool& whole) {
  std::vector<const Stack::Frame*> frames;
  below = thread.stack;
  while (!below.empty() && frames.size() < kMaxFrames) {
    if (below.top().count == Stack::kCall) {
      if (calls == 0) break;
      --calls;
    }
    frames.push_back(below.frame());
    below = below.Pop();
  }
  whole = below.empty();
  Stack upper;
  for (auto it = frames.rbegin(); it != frames.rend(); ++it) upper = upper.Push((*it)->point, (*it)->count);
  upper = LocalAutomaton::RelaxStack(grammar_->program(), upper, vocabulary_->nodes()[0].height);
  const LocalAutomaton::StateId start = automaton_.Start({thread.node, std::move(upper)});
  Place& place = places_[start];
  place.start = start;
  return place;
}

void Masker::Run(const Task& task, std::span<uint64_t> mask, std::vector<Task>& tasks) {
  Stack below;
  bool whole = false;
  uint32_t calls = 0;
  Place* place = &PlaceOf(task.thread, calls, below, whole);
  std::shared_ptr<const Nodes> escapes;
  if (!task.from) {
    while (true) {
      if (!place->walked) WalkRoot(*place);
      if (!place->too_open || whole || calls == kMaxCalls) break;
      place = &PlaceOf(task.thread, ++calls, below, whole);
    }
    for (size_t i = 0; i < mask.size(); ++i) mask[i] |= place->accepted[i];
    escapes = place->escapes;
  } else {
    const auto found = std::make_shared<Nodes>();
    for (const uint32_t node : *task.from) Walk(node, place->start, mask, *found);
    escapes = found;
  }
  if (escapes->empty()) return;

  // What these nodes' tokens begin with is read; the stack below says whether and how it goes on.
  std::vector<Thread> threads;
  closure_.Begin();
  closure_.AddReturn(std::move(below));
  if (!closure_.Finish(threads) || (threads.empty() && !closure_.reached_bottom())) return;
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  const auto inner = std::make_shared<Nodes>();
  for (const uint32_t node : *escapes) {
    Mark(nodes[node].tokens, nodes[node + 1].tokens, mask);
    if (nodes[node].end > node + 1) inner->push_back(node);
  }
  if (inner->empty()) return;
  for (Thread& thread : threads) {
    if (grammar_->program().nodes[thread.node].kind == NodeKind::kMatch) tasks.push_back({std::move(thread), inner});
  }
}

void Masker::WalkRoot(Place& place) {
  place.escapes = std::make_shared<Nodes>();
  // One byte less far from every bound, which for most of the vocabulary makes no difference.
  const LocalAutomaton::StateId relaxed = automaton_.Relax(place.start, 1);
  if (relaxed == place.start) {
    place.accepted.assign(vocabulary_->words(), 0);
    Walk(0, place.start, place.accepted, *place.escapes);
  } else {
    Place& base = places_[relaxed];
    base.start = relaxed;
    if (!base.walked) WalkRoot(base);
    WalkBeside(base, place);
  }
  place.walked = true;
  place.too_open = place.escapes->size() > kTooOpen;
  place.escapes->shrink_to_fit();
  place_bytes_ += sizeof(Place) + place.accepted.size() * sizeof(uint64_t) + place.escapes->size() * sizeof(uint32_t);
}

void Masker::Mark(uint32_t first, uint32_t last, std::span<uint64_t> mask) const {
  const std::vector<uint32_t>& ids = vocabulary_->ids();
  for (uint32_t i = first; i < last; ++i) mask[ids[i] / 64] |= uint64_t{1} << (ids[i] % 64);
}

void Masker::Clear(uint32_t first, uint32_t last, std::span<uint64_t> mask) const {
  const std::vector<uint32_t>& ids = vocabulary_->ids();
  for (uint32_t i = first; i < last; ++i) mask[ids[i] / 64] &= ~(uint64_t{1} << (ids[i] % 64));
}

bool Masker::TakesAll(const Vocabulary::Node& node, LocalAutomaton::StateId state) {
  return (node.classes & ~automaton_.Loops(state)) == 0 &&
         (node.utf8 || (node.classes >> Vocabulary::kMultibyteClass) == 0);
}

void Masker::WalkBeside(const Place& base, Place& place) {
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  place.accepted = base.accepted;
  const std::span<uint64_t> mask = place.accepted;
  auto known = base.escapes->begin();  // in the order of the walk, as place.escapes
  path_[0] = place.start;
  base_path_[0] = base.start;
  for (uint32_t i = 1; i < nodes[0].end;) {
    const Vocabulary::Node& node = nodes[i];
    const auto next = [&](LocalAutomaton::StateId from) {
      if (from == LocalAutomaton::kDead) return from;
      const LocalAutomaton::StateId to = automaton_.Next(from, node.byte);
      return to != LocalAutomaton::kDead && automaton_.alive(to) ? automaton_.Relax(to, node.height) : to;
    };
    const LocalAutomaton::StateId state = next(path_[node.depth - 1U]);
    const LocalAutomaton::StateId beside = next(base_path_[node.depth - 1U]);
    if (state == beside) {
      while (known != base.escapes->end() && *known < i) ++known;
      while (known != base.escapes->end() && *known < node.end) place.escapes->push_back(*known++);
      i = node.end;
      continue;
    }
    const bool alive = state != LocalAutomaton::kDead && automaton_.alive(state);
    if (!alive) {
      Clear(node.tokens, nodes[node.end].tokens, mask);
      if (state != LocalAutomaton::kDead) place.escapes->push_back(i);
      i = node.end;
      continue;
    }
    Mark(node.tokens, nodes[i + 1].tokens, mask);
    const bool inner = node.end > i + 1;
    if (inner && TakesAll(node, state)) {
      Mark(nodes[i + 1].tokens, nodes[node.end].tokens, mask);
      i = node.end;
      continue;
    }
    if (inner && automaton_.escapes(state)) place.escapes->push_back(i);
    path_[node.depth] = state;
    base_path_[node.depth] = beside;
    ++i;
  }
}

void Masker::Walk(uint32_t top, LocalAutomaton::StateId start, std::span<uint64_t> mask, Nodes& escapes) {
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  const uint32_t end = nodes[top].end;
  path_[nodes[top].depth] = start;
  for (uint32_t i = top + 1; i < end;) {
    const Vocabulary::Node& node = nodes[i];
    LocalAutomaton::StateId state = automaton_.Next(path_[node.depth - 1U], node.byte);
    if (state == LocalAutomaton::kDead) {
      i = node.end;
      continue;
    }
    const bool alive = automaton_.alive(state);
    if (alive) Mark(node.tokens, nodes[i + 1].tokens, mask);
    const bool inner = node.end > i + 1;
    if (alive && inner) {
      state = automaton_.Relax(state, node.height);
      if (TakesAll(node, state)) {
        Mark(nodes[i + 1].tokens, nodes[node.end].tokens, mask);
        i = node.end;
        continue;
      }
    }
    if (automaton_.escapes(state) && (inner || !alive)) escapes.push_back(i);
    if (!alive) {
      i = node.end;
      continue;
    }
    path_[node.depth] = state;
    ++i;
  }
}

// Without anything shared: every node with a state of its own.
void Masker::Slow(const GrammarState& state, std::span<uint64_t> mask) const {
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  std::vector<GrammarState> path{state};
  for (uint32_t i = 1; i < vocabulary_->node_count();) {
    const Vocabulary::Node& node = nodes[i];
    path.erase(path.begin() + node.depth, path.end());
    GrammarState next = path.back();
    if (!next.Accept(node.byte)) {
      i = node.end;
      continue;
    }
    Mark(node.tokens, nodes[i + 1].tokens, mask);
    path.push_back(std::move(next));
    ++i;
  }
}

}  // namespace tokenloop::grammar
