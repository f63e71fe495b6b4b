#include "engine/scheduler.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace tokenloop {

namespace {

// Water filling: serves the shortest first; each may take an equal part of what is left, and leaves what it lacks.
// `indices` are of one priority. Returns what is left.
uint32_t ShareOut(std::span<size_t> indices, std::span<const SequenceView> sequences, uint32_t room, StepPlan& plan) {
  std::stable_sort(indices.begin(), indices.end(),
                   [&](size_t a, size_t b) { return sequences[a].pending < sequences[b].pending; });
  for (size_t k = 0; k < indices.size() && room > 0; ++k) {
    const auto left = static_cast<uint32_t>(indices.size() - k);
    const uint32_t part = std::max<uint32_t>(1, room / left);
    const uint32_t tokens = std::min(sequences[indices[k]].pending, part);
    plan.shares.push_back({indices[k], tokens});
    room -= tokens;
  }
  return room;
}

}  // namespace

StepPlan PlanStep(std::span<const SequenceView> sequences, const StepLimits& limits) {
  StepPlan plan;
  // First in the order of service first, paused ones behind all others.
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t i) {
      return std::tuple(sequences[i].paused, sequences[i].priority, sequences[i].arrival, i);
    };
    return key(a) < key(b);
  });
  if (order.empty() || sequences[order.front()].paused) return plan;

  // Preempt from the end until every decoding sequence, and at least one token of the first, has a cell.
  uint64_t free = limits.free_cells;
  const auto needed = [&] {
    uint64_t cells = sequences[order.front()].decoding ? 0 : 1;
    for (const size_t i : order) cells += sequences[i].decoding && !sequences[i].paused ? 1 : 0;
    return cells;
  };
  while (free < needed() && order.size() > 1) {
    const size_t last = order.back();
    order.pop_back();
    plan.preempted.push_back(last);
    free += sequences[last].cells;
  }
  std::erase_if(order, [&](size_t i) { return sequences[i].paused; });

  auto room = static_cast<uint32_t>(std::min<uint64_t>(limits.batch_size, free));
  std::vector<size_t> prefilling;
  for (const size_t i : order) {
    if (!sequences[i].decoding) {
      prefilling.push_back(i);
    } else if (room > 0) {
      plan.shares.push_back({i, 1});
      --room;
    }
  }
  uint32_t drafts = 0;
  for (bool more = true; more && room > 0;) {
    more = false;
    for (StepPlan::Share& share : plan.shares) {
      if (room == 0 || share.tokens > sequences[share.index].drafts) continue;
      ++share.tokens;
      ++drafts;
      --room;
      more = true;
    }
  }
  const uint32_t budget = order.size() == 1 ? limits.alone_budget
                          : limits.prompt_budget > drafts + PromptBudget::kFloor
                              ? limits.prompt_budget - drafts
                              : std::min(limits.prompt_budget, PromptBudget::kFloor);
  room = std::min(room, budget);

  // They are in the order of service: one priority after the other.
  for (auto level = prefilling.begin(); level != prefilling.end() && room > 0;) {
    const auto end = std::find_if(level, prefilling.end(),
                                  [&](size_t i) { return sequences[i].priority != sequences[*level].priority; });
    room = ShareOut({level, end}, sequences, room, plan);
    level = end;
  }
  return plan;
}

namespace {

// Slow to trust, so that one step disturbed by the machine does not halve the next.
double Follow(double mean, double sample) { return mean == 0 ? sample : 0.8 * mean + 0.2 * sample; }

}  // namespace

void PromptBudget::Observe(uint32_t prompt_tokens, uint32_t decoding, double ms) {
  if (ms <= 0) return;
  if (prompt_tokens == 0) {
    if (decoding > 0) decode_ms_ = Follow(decode_ms_, ms);
    return;
  }
  // What decoding costs may be known from longer ago, when it cost more.
  if (decoding > 0) decode_ms_ = std::min(decode_ms_, ms);
  const double prompt_ms = std::max(ms - (decoding > 0 ? decode_ms_ : 0), 0.1 * ms);
  ms_per_token_ = Follow(ms_per_token_, prompt_ms / prompt_tokens);
}

uint32_t PromptBudget::Tokens(uint32_t decoding) const {
  if (ms_per_token_ == 0) return 4 * kFloor;
  const double left = std::max(target_ms_ - (decoding > 0 ? decode_ms_ : 0), target_ms_ / 4);
  return static_cast<uint32_t>(std::clamp<double>(left / ms_per_token_, kFloor, 1 << 20));
}

}  // namespace tokenloop
