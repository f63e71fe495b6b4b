#include "grammar/local_automaton.h"

#include <algorithm>
#include <bitset>

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
  uint8_t interval = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && starts.test(byte)) ++interval;
    state->interval[byte] = interval;
  }
  state->next.assign(size_t{interval} + 1, kUnknown);
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

// Where all these bytes lead, if they lead to the same state.
LocalAutomaton::StateId LocalAutomaton::Common(StateId state, uint8_t low, uint8_t high) {
  if (state == kDead) return kDead;
  const StateId next = Next(state, low);
  for (uint32_t byte = low + 1U; byte <= high; ++byte) {
    if (Next(state, static_cast<uint8_t>(byte)) != next) return kDead;
  }
  return next;
}

bool LocalAutomaton::LoopsOverMultibyte(StateId state) {
  struct Form {
    uint8_t low, high, second_low, second_high, rest;
  };
  // Unicode 15, table 3-7.
  constexpr Form forms[] = {{0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1},
                            {0xED, 0xED, 0x80, 0x9F, 1}, {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
                            {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2}};
  return std::all_of(std::begin(forms), std::end(forms), [&](const Form& form) {
    StateId at = Common(Common(state, form.low, form.high), form.second_low, form.second_high);
    for (uint8_t i = 0; i < form.rest; ++i) at = Common(at, 0x80, 0xBF);
    return at == state;
  });
}

uint64_t LocalAutomaton::Loops(StateId id) {
  if (states_[static_cast<size_t>(id)]->loops_known) return states_[static_cast<size_t>(id)]->loops;
  uint64_t loops = ~uint64_t{0};
  if (!alive(id)) loops = 0;
  for (uint32_t byte = 0; byte < 0x80 && loops != 0; ++byte) {
    const uint64_t bit = uint64_t{1} << Vocabulary::ByteClass(static_cast<uint8_t>(byte));
    if ((loops & bit) != 0 && Next(id, static_cast<uint8_t>(byte)) != id) loops &= ~bit;
  }
  if (loops != 0 && !LoopsOverMultibyte(id)) loops &= ~(uint64_t{1} << Vocabulary::kMultibyteClass);
  State& state = *states_[static_cast<size_t>(id)];
  state.loops_known = true;
  state.loops = loops;
  return loops;
}

}  // namespace tokenloop::grammar
