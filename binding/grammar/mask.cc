#include "grammar/mask.h"

#include <algorithm>

namespace tokenloop::grammar {

namespace {

// Frames that a place may hold. More make it know more and serve fewer states.
constexpr uint32_t kMaxFrames = 8;
constexpr uint32_t kMaxCalls = 3;
// Above this many nodes where the real stack decides, one frame more is looked at.
constexpr size_t kTooOpen = 6000;
// Within so many bytes of a bound it is worth to know how many characters are left.
constexpr uint32_t kNear = 24;
// What a task costs beside its walk, in nodes visited.
constexpr uint64_t kStepsOfTask = 2000;

}  // namespace

Masker::Masker(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const Vocabulary> vocabulary, MaskLimits limits)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      limits_(limits),
      closure_(grammar_->program()),
      automaton_(grammar_->program()) {
  path_.resize(size_t{vocabulary_->nodes()[0].height} + 1);
  beside_.resize(path_.size());
}

size_t Masker::bytes() const {
  const std::lock_guard lock(mutex_);
  return automaton_.bytes() + place_bytes_ + masks_.size() * vocabulary_->words() * sizeof(uint64_t);
}

bool Masker::Compute(const GrammarState& state, std::span<uint64_t> mask) {
  const std::lock_guard lock(mutex_);
  const uint64_t hash = state.hash();
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry) {
    if (!(entry->second->state == state)) continue;
    masks_.splice(masks_.begin(), masks_, entry->second);
    std::copy(entry->second->mask.begin(), entry->second->mask.end(), mask.begin());
    return true;
  }
  if (!Build(state, mask)) return false;
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
  return true;
}

void Masker::MakeRoom() {
  if (automaton_.bytes() + place_bytes_ <= limits_.cached_parts) return;
  places_.clear();
  automaton_.Clear();
  place_bytes_ = 0;
}

bool Masker::Build(const GrammarState& state, std::span<uint64_t> mask) {
  std::fill(mask.begin(), mask.end(), 0);
  MakeRoom();
  MarkTokens(state, mask);
  std::vector<Task> tasks;
  AddTasks(state.threads(), 0, nullptr, tasks);
  return RunAll(tasks, mask);
}

bool Masker::AddBelow(const GrammarState& state, std::vector<uint32_t> nodes, std::span<uint64_t> mask) {
  const std::lock_guard lock(mutex_);
  MakeRoom();
  const auto from = std::make_shared<const Nodes>(std::move(nodes));
  std::vector<Task> tasks;
  AddTasks(state.threads(), 0, from, tasks);
  return RunAll(tasks, mask);
}

bool Masker::RunAll(std::vector<Task>& tasks, std::span<uint64_t> mask) {
  steps_ = 0;
  work_before_ = automaton_.work();
  while (!tasks.empty()) {
    steps_ += kStepsOfTask;
    if (tired()) return false;
    Task task = std::move(tasks.back());
    tasks.pop_back();
    Run(task, mask, tasks);
  }
  return !tired();
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

// Splits stacks behind `calls` calls at most.
void Masker::AddTasks(const std::vector<Thread>& threads, uint32_t calls, const std::shared_ptr<const Nodes>& from,
                      std::vector<Task>& tasks) const {
  std::unordered_multimap<uint64_t, size_t> by_stack;
  for (const Thread& thread : threads) {
    if (grammar_->program().nodes[thread.node].kind != NodeKind::kMatch) continue;
    std::vector<const Stack::Frame*> frames;
    Stack below = thread.stack;
    for (uint32_t left = calls; !below.empty() && frames.size() < kMaxFrames;) {
      if (below.top().count == Stack::kCall && left-- == 0) break;
      frames.push_back(below.frame());
      below = below.Pop();
    }
    Stack upper;
    for (auto it = frames.rbegin(); it != frames.rend(); ++it) upper = upper.Push((*it)->point, (*it)->count);
    upper = LocalAutomaton::RelaxStack(grammar_->program(), upper, vocabulary_->nodes()[0].height);

    const auto [first, last] = by_stack.equal_range(below.hash());
    const auto found = std::find_if(first, last, [&](const auto& entry) { return tasks[entry.second].below == below; });
    const size_t index = found == last ? tasks.size() : found->second;
    if (found == last) {
      by_stack.emplace(below.hash(), index);
      tasks.push_back({{}, {}, std::move(below), calls, from});
    }
    tasks[index].threads.push_back(thread);
    tasks[index].upper.push_back({thread.node, std::move(upper)});
  }
}

void Masker::Run(Task& task, std::span<uint64_t> mask, std::vector<Task>& tasks) {
  const LocalAutomaton::StateId start = automaton_.Start(task.upper);
  std::shared_ptr<const Nodes> escapes;
  if (!task.from) {
    Place& place = places_[start];
    place.start = start;
    if (!place.walked) WalkRoot(place);
    if (place.too_open && !task.below.empty() && task.calls < kMaxCalls) {
      AddTasks(task.threads, task.calls + 1, nullptr, tasks);
      return;
    }
    for (size_t i = 0; i < mask.size(); ++i) mask[i] |= place.accepted[i];
    escapes = place.escapes;
  } else {
    const auto found = std::make_shared<Nodes>();
    for (const uint32_t node : *task.from) Walk(node, start, mask, *found);
    escapes = found;
  }
  if (escapes->empty()) return;

  // What these nodes' tokens begin with is read; the stack below says whether and how it goes on.
  std::vector<Thread> threads;
  closure_.Begin();
  closure_.AddReturn(std::move(task.below));
  if (!closure_.Finish(threads) || (threads.empty() && !closure_.reached_bottom())) return;
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  const auto inner = std::make_shared<Nodes>();
  for (const uint32_t node : *escapes) {
    Mark(nodes[node].tokens, nodes[node + 1].tokens, mask);
    if (nodes[node].end > node + 1) inner->push_back(node);
  }
  if (inner->empty()) return;
  AddTasks(threads, 0, inner, tasks);
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
  place.walked = !tired();  // else it is not known well enough to be used again
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

void Masker::ClearLong(uint32_t first, uint32_t last, uint32_t characters, std::span<uint64_t> mask) const {
  const std::vector<uint32_t>& ids = vocabulary_->ids();
  const std::vector<uint16_t>& lengths = vocabulary_->characters();
  for (uint32_t i = first; i < last; ++i) {
    const uint64_t gone = lengths[i] > characters ? 1 : 0;
    mask[ids[i] / 64] &= ~(gone << (ids[i] % 64));
  }
}

bool Masker::TakesAll(const Vocabulary::Node& node, LocalAutomaton::StateId state) {
  return (node.classes & ~automaton_.Loops(state)) == 0 &&
         (node.utf8 || (node.classes >> Vocabulary::kMultibyteClass) == 0);
}

void Masker::WalkBeside(const Place& base, Place& place) {
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  place.accepted = base.accepted;
  const std::span<uint64_t> mask = place.accepted;
  // Both in the order of the walk. What is passed by without a look is as in the base.
  Nodes& escapes = *place.escapes;
  auto known = base.escapes->begin();
  const auto copy_until = [&](uint32_t node) {
    while (known != base.escapes->end() && *known < node) escapes.push_back(*known++);
  };
  const auto drop_until = [&](uint32_t node) {
    while (known != base.escapes->end() && *known < node) ++known;
  };
  const auto enter = [&](uint32_t depth, LocalAutomaton::StateId state, LocalAutomaton::StateId beside, uint32_t end) {
    beside_[depth] = {state, beside, beside == LocalAutomaton::kDead ? 0 : automaton_.Horizon(state, beside), end};
  };
  enter(0, place.start, base.start, nodes[0].end);
  for (uint32_t i = 1; i < nodes[0].end && !tired();) {
    ++steps_;
    const Vocabulary::Node& node = nodes[i];
    const Beside& parent = beside_[node.depth - 1U];
    if (node.height < parent.horizon) {
      // Nor can what is left of its siblings tell the two apart: they are no higher.
      i = parent.end;
      continue;
    }
    const auto next = [&](LocalAutomaton::StateId from) {
      if (from == LocalAutomaton::kDead) return from;
      const LocalAutomaton::StateId to = automaton_.Next(from, node.byte);
      return to != LocalAutomaton::kDead && automaton_.alive(to) ? automaton_.Relax(to, node.height) : to;
    };
    const LocalAutomaton::StateId state = next(parent.state);
    const LocalAutomaton::StateId beside = next(parent.beside);
    if (state == beside) {
      i = node.end;
      continue;
    }
    copy_until(i);
    const bool alive = state != LocalAutomaton::kDead && automaton_.alive(state);
    if (!alive) {
      Clear(node.tokens, nodes[node.end].tokens, mask);
      if (state != LocalAutomaton::kDead) escapes.push_back(i);
      drop_until(node.end);
      i = node.end;
      continue;
    }
    Mark(node.tokens, nodes[i + 1].tokens, mask);
    const bool inner = node.end > i + 1;
    const LocalAutomaton::StateId narrow = inner ? automaton_.Narrow(state, node.height) : state;
    if (inner && TakesAll(node, narrow)) {
      const bool known_all = beside != LocalAutomaton::kDead && TakesAll(node, beside);
      if (!known_all) Mark(nodes[i + 1].tokens, nodes[node.end].tokens, mask);
      drop_until(node.end);
      i = node.end;
      continue;
    }
    enter(node.depth, state, beside, node.end);
    if (inner && beside != LocalAutomaton::kDead && beside_[node.depth].horizon <= kNear && TakesAll(node, beside)) {
      const LocalAutomaton::Countdown& left = automaton_.CountdownOf(state);
      if ((node.classes & ~left.classes) == 0) {
        ClearLong(nodes[i + 1].tokens, nodes[node.end].tokens, node.characters + left.characters, mask);
        drop_until(node.end);
        i = node.end;
        continue;
      }
    }
    if (inner && automaton_.escapes(state)) escapes.push_back(i);
    drop_until(i + 1);
    ++i;
  }
  copy_until(nodes[0].end);
  // What the base allows and this place does not may not be cleared yet.
  if (tired()) std::fill(mask.begin(), mask.end(), 0);
}

void Masker::Walk(uint32_t top, LocalAutomaton::StateId start, std::span<uint64_t> mask, Nodes& escapes) {
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  const uint32_t end = nodes[top].end;
  path_[nodes[top].depth] = start;
  for (uint32_t i = top + 1; i < end && !tired();) {
    ++steps_;
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
      if (TakesAll(node, automaton_.Narrow(state, node.height))) {
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

}  // namespace tokenloop::grammar
