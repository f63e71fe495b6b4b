#include "engine/scheduler.h"

#include <algorithm>
#include <numeric>

namespace tokenloop {

StepPlan PlanStep(std::span<const SequenceView> sequences, const StepLimits& limits) {
  StepPlan plan;
  if (sequences.empty()) return plan;

  std::vector<size_t> by_age(sequences.size());
  std::iota(by_age.begin(), by_age.end(), size_t{0});
  std::stable_sort(by_age.begin(), by_age.end(),
                   [&](size_t a, size_t b) { return sequences[a].admitted < sequences[b].admitted; });

  // Preempt the youngest until every decoding sequence, and at least one token of the oldest, has a cell.
  uint64_t free = limits.free_cells;
  const auto needed = [&] {
    uint64_t cells = sequences[by_age.front()].decoding ? 0 : 1;
    for (const size_t i : by_age) cells += sequences[i].decoding ? 1 : 0;
    return cells;
  };
  while (free < needed() && by_age.size() > 1) {
    const size_t youngest = by_age.back();
    by_age.pop_back();
    plan.preempted.push_back(youngest);
    free += sequences[youngest].cells;
  }

  uint32_t room = static_cast<uint32_t>(std::min<uint64_t>(limits.batch_size, free));
  std::vector<size_t> prefilling;
  for (const size_t i : by_age) {
    if (!sequences[i].decoding) {
      prefilling.push_back(i);
    } else if (room > 0) {
      plan.shares.push_back({i, 1});
      --room;
    }
  }
  room = std::min(room, by_age.size() > 1 ? limits.prompt_budget : limits.alone_budget);

  // Water filling: serve the shortest first; each may take an equal part of what is left, and leaves what it lacks.
  std::stable_sort(prefilling.begin(), prefilling.end(),
                   [&](size_t a, size_t b) { return sequences[a].pending < sequences[b].pending; });
  for (size_t k = 0; k < prefilling.size() && room > 0; ++k) {
    const auto left = static_cast<uint32_t>(prefilling.size() - k);
    const uint32_t part = std::max<uint32_t>(1, room / left);
    const uint32_t tokens = std::min(sequences[prefilling[k]].pending, part);
    plan.shares.push_back({prefilling[k], tokens});
    room -= tokens;
  }
  return plan;
}

void PromptBudget::Observe(uint32_t tokens, double ms) {
  if (tokens == 0 || ms <= 0) return;
  const double sample = ms / tokens;
  // Slow to trust, so that one step disturbed by the machine does not halve the next.
  ms_per_token_ = ms_per_token_ == 0 ? sample : 0.8 * ms_per_token_ + 0.2 * sample;
}

uint32_t PromptBudget::Tokens(uint32_t decoding) const {
  if (ms_per_token_ == 0) return 4 * kFloor;
  const double tokens = target_ms_ / ms_per_token_ - decoding;
  return static_cast<uint32_t>(std::clamp<double>(tokens, kFloor, 1 << 20));
}

}  // namespace tokenloop
