#include "grammar/local_automaton.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <optional>

#include "grammar/matcher.h"
#include "grammar/vocabulary.h"

namespace tokenloop::grammar {

namespace {

// Up to how many bytes the counter of this frame stays away from its bounds; 0: it is at one, or there is no counter.
uint32_t Reach(const Program& program, const Stack::Frame& frame) {
  if (frame.count >= Stack::kFarWithin) return 0;
  // Every turn reads a byte at least, and so does what is left of the one under way.
  const Node& loop = program.nodes[frame.point];
  if (frame.count + 1 < loop.min) return loop.min - frame.count - 1;
  if (loop.max == Node::kUnbounded) return Node::kUnbounded;
  return loop.max - frame.count - 1;
}

// Up to how many bytes there is a next turn, whatever comes.
uint32_t ReachOfMax(const Program& program, const Stack::Frame& frame) {
  if (frame.count >= Stack::kFarWithin) return 0;
  const Node& loop = program.nodes[frame.point];
  return loop.max == Node::kUnbounded ? Node::kUnbounded : loop.max - frame.count - 1;
}

template <typename F>
Stack ChangeCounts(const Stack& stack, const F& change) {
  std::vector<const Stack::Frame*> frames;
  for (const Stack::Frame* frame = stack.frame(); frame != nullptr; frame = frame->parent) frames.push_back(frame);
  Stack changed;
  for (auto it = frames.rbegin(); it != frames.rend(); ++it) changed = changed.Push((*it)->point, change(**it));
  return changed;
}

Stack NarrowStack(const Program& program, const Stack& stack, uint32_t height) {
  return ChangeCounts(stack, [&](const Stack::Frame& frame) {
    const uint32_t reach = ReachOfMax(program, frame);
    return reach > 0 && height <= reach ? Stack::kFarBelow : frame.count;
  });
}

void Tidy(std::vector<std::pair<uint32_t, LocalAutomaton::StateId>>& steps) {
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
}

}  // namespace

LocalAutomaton::StateId LocalAutomaton::Start(const std::vector<Thread>& threads) {
  closure_.Begin();
  for (const Thread& thread : threads) closure_.Add(thread.node, thread.stack);
  std::vector<Thread> sorted;
  closure_.Finish(sorted);
  return Intern(std::move(sorted), false);
}

void LocalAutomaton::Clear() {
  states_.clear();
  index_.clear();
  bytes_ = 0;
}

LocalAutomaton::StateId LocalAutomaton::Intern(std::vector<Thread> threads, bool escapes) {
  if (threads.empty() && !escapes) return kDead;
  uint64_t hash = escapes ? 1 : 2;
  for (const Thread& thread : threads) hash = MixHash(hash, thread.hash());
  const auto [first, last] = index_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry) {
    const State& known = *states_[static_cast<size_t>(entry->second)];
    if (known.escapes == escapes && known.threads == threads) return entry->second;
  }
  auto state = std::make_unique<State>();
  std::bitset<257> starts;
  starts.set(0);
  for (const Thread& thread : threads) {
    const Node& node = program_.nodes[thread.node];
    if (node.kind == NodeKind::kMatch) {
      for (uint32_t i = node.a; i < node.b; ++i) {
        starts.set(program_.edges[i].low);
        starts.set(size_t{program_.edges[i].high} + 1);
      }
    }
    for (const Stack::Frame* frame = thread.stack.frame(); frame != nullptr; frame = frame->parent) {
      if (const uint32_t reach = Reach(program_, *frame); reach > 0) state->relaxed.emplace_back(reach, kUnknown);
      if (const uint32_t reach = ReachOfMax(program_, *frame); reach > 0) state->narrowed.emplace_back(reach, kUnknown);
    }
  }
  Tidy(state->relaxed);
  Tidy(state->narrowed);
  if (!state->relaxed.empty()) state->highest_relaxed = state->relaxed.back().first;
  if (!state->narrowed.empty()) state->highest_narrowed = state->narrowed.back().first;
  uint8_t interval = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && starts.test(byte)) ++interval;
    state->interval[byte] = interval;
  }
  state->next.assign(size_t{interval} + 1, kUnknown);
  state->alive = !threads.empty();
  state->escapes = escapes;
  state->threads = std::move(threads);
  bytes_ += sizeof(State) + state->next.size() * sizeof(StateId) + state->threads.size() * 4 * sizeof(Thread);
  const auto id = static_cast<StateId>(states_.size());
  states_.push_back(std::move(state));
  index_.emplace(hash, id);
  return id;
}

LocalAutomaton::StateId LocalAutomaton::Compute(StateId state, uint8_t byte) {
  work_ += states_[static_cast<size_t>(state)]->threads.size();
  closure_.Begin();
  for (const Thread& thread : states_[static_cast<size_t>(state)]->threads) {
    const Node& node = program_.nodes[thread.node];
    if (node.kind != NodeKind::kMatch) continue;
    const NodeId next = Follow(program_, node, byte);
    if (next != kNoNode) closure_.Add(next, thread.stack);
  }
  std::vector<Thread> threads;
  // What is too much here is too much for the whole state as well.
  const StateId next = closure_.Finish(threads) ? Intern(std::move(threads), closure_.reached_bottom()) : kDead;
  State& from = *states_[static_cast<size_t>(state)];
  from.next[from.interval[byte]] = next;
  return next;
}

Stack LocalAutomaton::RelaxStack(const Program& program, const Stack& stack, uint32_t height) {
  return ChangeCounts(stack, [&](const Stack::Frame& frame) {
    const uint32_t reach = Reach(program, frame);
    if (reach == 0 || height > reach) return frame.count;
    return frame.count + 1 < program.nodes[frame.point].min ? Stack::kFarBelow : Stack::kFarWithin;
  });
}

LocalAutomaton::StateId LocalAutomaton::Change(StateId id, uint32_t height, Steps State::*steps) {
  State& state = *states_[static_cast<size_t>(id)];
  Steps& known = state.*steps;
  auto step = known.begin();
  while (step != known.end() && step->first < height) ++step;
  if (step == known.end()) return id;
  if (step->second != kUnknown) return step->second;
  work_ += state.threads.size();
  // Through a closure: threads that differed in counters only are one now, and the order is another.
  closure_.Begin();
  for (const Thread& thread : state.threads) {
    closure_.Add(thread.node, steps == &State::relaxed ? RelaxStack(program_, thread.stack, step->first)
                                                       : NarrowStack(program_, thread.stack, step->first));
  }
  std::vector<Thread> threads;
  const StateId changed = closure_.Finish(threads) ? Intern(std::move(threads), state.escapes) : id;
  step->second = changed;  // states are never moved
  return changed;
}

uint32_t LocalAutomaton::Horizon(StateId x, StateId y) {
  if (x == y) return UINT32_MAX;
  // Between two heights at which a counter drops out nothing changes. Ascending, and the states are never moved.
  const Steps& left = states_[static_cast<size_t>(x)]->relaxed;
  const Steps& right = states_[static_cast<size_t>(y)]->relaxed;
  size_t i = left.size();
  size_t j = right.size();
  while (i > 0 || j > 0) {
    const uint32_t height = std::max(i > 0 ? left[i - 1].first : 0, j > 0 ? right[j - 1].first : 0);
    if (Relax(x, height) == Relax(y, height)) return height;
    if (i > 0 && left[i - 1].first == height) --i;
    if (j > 0 && right[j - 1].first == height) --j;
  }
  return 0;
}

LocalAutomaton::StateId LocalAutomaton::Common(StateId state, uint8_t low, uint8_t high) {
  if (state < 0) return state;
  const StateId next = Next(state, low);
  for (uint32_t byte = low + 1U; byte <= high; ++byte) {
    if (Next(state, static_cast<uint8_t>(byte)) != next) return kUnknown;
  }
  return next;
}

LocalAutomaton::StateId LocalAutomaton::CommonOverMultibyte(StateId state) {
  struct Form {
    uint8_t low, high, second_low, second_high, rest;
  };
  // Unicode 15, table 3-7.
  constexpr Form forms[] = {{0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1},
                            {0xED, 0xED, 0x80, 0x9F, 1}, {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
                            {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2}};
  std::optional<StateId> common;
  for (const Form& form : forms) {
    StateId at = Common(state, form.low, form.high);
    const bool dead = at == kDead;
    if (at >= 0) at = Common(at, form.second_low, form.second_high);
    for (uint8_t i = 0; i < form.rest && at >= 0; ++i) at = Common(at, 0x80, 0xBF);
    // Half a character may be a token, too: a dead end must be one from the first byte on.
    if (at == kUnknown || (at == kDead && !dead) || (common && *common != at)) return kUnknown;
    common = at;
  }
  return *common;
}

std::pair<LocalAutomaton::StateId, uint64_t> LocalAutomaton::CommonTarget(StateId id) {
  std::array<StateId, Vocabulary::kMultibyteClass + 1> targets;
  std::array<bool, Vocabulary::kMultibyteClass + 1> seen{};
  for (uint32_t byte = 0; byte < 0x80; ++byte) {
    const uint32_t kind = Vocabulary::ByteClass(static_cast<uint8_t>(byte));
    const StateId next = Next(id, static_cast<uint8_t>(byte));
    targets[kind] = seen[kind] && targets[kind] != next ? kUnknown : next;
    seen[kind] = true;
  }
  targets[Vocabulary::kMultibyteClass] = CommonOverMultibyte(id);
  seen[Vocabulary::kMultibyteClass] = true;
  StateId target = kUnknown;
  uint64_t classes = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!seen[i] || targets[i] == kUnknown || targets[i] == target) continue;
    uint64_t same = 0;
    for (size_t j = i; j < targets.size(); ++j) {
      if (seen[j] && targets[j] == targets[i]) same |= uint64_t{1} << j;
    }
    if (std::popcount(same) <= std::popcount(classes)) continue;
    target = targets[i];
    classes = same;
  }
  return {target, classes};
}

const LocalAutomaton::Countdown& LocalAutomaton::CountdownOf(StateId id) {
  std::vector<std::pair<StateId, uint64_t>> chain;
  Countdown known;
  for (StateId at = id;;) {
    const State& state = *states_[static_cast<size_t>(at)];
    if (state.countdown_known) {
      known = state.countdown;
      break;
    }
    if (chain.size() > kMostCountdown) {
      // Too far from the end: the states behind are not.
      chain.resize(1);
      break;
    }
    if (!state.alive || state.escapes) break;
    const auto [next, classes] = CommonTarget(at);
    chain.emplace_back(at, classes);
    if (next == kDead) {
      known = {classes, 0};
      State& last = *states_[static_cast<size_t>(at)];
      last.countdown = known;
      last.countdown_known = true;
      chain.pop_back();
      break;
    }
    if (next == kUnknown || next == at) break;
    at = next;
  }
  while (!chain.empty()) {
    const auto [at, classes] = chain.back();
    chain.pop_back();
    if (known.classes != 0) known = {known.classes & classes, known.characters + 1};
    State& state = *states_[static_cast<size_t>(at)];
    state.countdown = known;
    state.countdown_known = true;
  }
  return states_[static_cast<size_t>(id)]->countdown;
}

uint64_t LocalAutomaton::FindLoops(StateId id) {
  uint64_t loops = ~uint64_t{0};
  if (!alive(id)) loops = 0;
  for (uint32_t byte = 0; byte < 0x80 && loops != 0; ++byte) {
    const uint64_t bit = uint64_t{1} << Vocabulary::ByteClass(static_cast<uint8_t>(byte));
    if ((loops & bit) != 0 && Next(id, static_cast<uint8_t>(byte)) != id) loops &= ~bit;
  }
  if (loops != 0 && CommonOverMultibyte(id) != id) loops &= ~(uint64_t{1} << Vocabulary::kMultibyteClass);
  State& state = *states_[static_cast<size_t>(id)];
  state.loops_known = true;
  state.loops = loops;
  return loops;
}

}  // namespace tokenloop::grammar
