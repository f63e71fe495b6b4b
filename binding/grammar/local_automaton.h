// A deterministic automaton over bytes, built as it is walked, for what can be known of a place in a grammar without
// the stack below it. Pure; used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/closure.h"
#include "grammar/program.h"

namespace tokenloop::grammar {

// States are sets of threads whose stacks are only the upper frames of the real ones: reaching the bottom means that
// the real stack decides how it goes on ("escapes"). They stay valid until Clear().
class LocalAutomaton {
 public:
  using StateId = int32_t;
  static constexpr StateId kDead = -1;

  explicit LocalAutomaton(const Program& program) : program_(program), closure_(program) {}

  // The threads wait for bytes; their stacks are the upper frames only.
  StateId Start(const std::vector<Thread>& threads);
  StateId Next(StateId state, uint8_t byte) {
    State& from = *states_[static_cast<size_t>(state)];
    const StateId next = from.next[from.interval[byte]];
    return next != kUnknown ? next : Compute(state, byte);
  }
  // Some thread waits for a byte: what was read so far is fine, whatever the real stack.
  bool alive(StateId state) const { return states_[static_cast<size_t>(state)]->alive; }
  bool escapes(StateId state) const { return states_[static_cast<size_t>(state)]->escapes; }
  // An equivalent of `state` for texts of at most `height` bytes, the same for many states that differ in their
  // counters only.
  StateId Relax(StateId state, uint32_t height) {
    return height > states_[static_cast<size_t>(state)]->highest_relaxed ? state
                                                                         : Change(state, height, &State::relaxed);
  }
  // The most bytes that `x` and `y` are known to take alike; states that are alive.
  uint32_t Horizon(StateId x, StateId y);
  // A state that takes no more than `state` does of such texts: it never leaves a repetition that can go on.
  StateId Narrow(StateId state, uint32_t height) {
    return height > states_[static_cast<size_t>(state)]->highest_narrowed ? state
                                                                          : Change(state, height, &State::narrowed);
  }
  // The classes of bytes (Vocabulary::ByteClass) that all lead back to `state`; kMultibyteClass: so do all characters
  // beyond ASCII.
  uint64_t Loops(StateId id) {
    const State& state = *states_[static_cast<size_t>(id)];
    return state.loops_known ? state.loops : FindLoops(id);
  }

  // Texts of the characters `classes` (as in Loops) are read from a state up to this many characters, alive all the way
  // and without escaping; one more is the end. No classes: nothing is known.
  struct Countdown {
    uint64_t classes = 0;
    uint32_t characters = 0;
  };
  // Not beyond kMostCountdown characters.
  const Countdown& CountdownOf(StateId id);
  static constexpr uint32_t kMostCountdown = 32;

  size_t bytes() const { return bytes_; }
  // Threads that were moved since the beginning.
  uint64_t work() const { return work_; }
  void Clear();

  // Replaces the counters that `height` bytes cannot bring to a bound.
  static Stack RelaxStack(const Program& program, const Stack& stack, uint32_t height);

 private:
  // Heights, ascending, at which one more counter drops out, and what the state is without those.
  using Steps = std::vector<std::pair<uint32_t, StateId>>;

  static constexpr StateId kUnknown = -2;

  struct State {
    // What a walk looks at, close together.
    bool alive = false;
    bool escapes = false;
    bool loops_known = false;
    bool countdown_known = false;
    uint32_t highest_relaxed = 0;  // the last step's height
    uint32_t highest_narrowed = 0;
    uint64_t loops = 0;
    Countdown countdown;
    std::vector<StateId> next;            // by interval
    std::array<uint8_t, 256> interval{};  // bytes that no edge tells apart
    Steps relaxed;
    Steps narrowed;
    std::vector<Thread> threads;
  };

  StateId Change(StateId state, uint32_t height, Steps State::*steps);
  StateId Compute(StateId state, uint8_t byte);
  StateId Intern(std::vector<Thread> threads, bool escapes);
  // Where all these bytes lead, if they lead to the same state; kUnknown if not.
  StateId Common(StateId state, uint8_t low, uint8_t high);
  uint64_t FindLoops(StateId state);
  // Where all characters beyond ASCII lead, if they lead to the same state; kUnknown if not.
  StateId CommonOverMultibyte(StateId state);
  // Where most characters lead, and the classes that do.
  std::pair<StateId, uint64_t> CommonTarget(StateId state);

  const Program& program_;
  Closure closure_;
  std::vector<std::unique_ptr<State>> states_;
  std::unordered_multimap<uint64_t, StateId> index_;
  size_t bytes_ = 0;
  uint64_t work_ = 0;
};

}  // namespace tokenloop::grammar
