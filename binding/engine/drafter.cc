#include "engine/drafter.h"

#include <algorithm>

namespace tokenloop {
namespace {

// FNV-1a over whole tokens: runs are compared afterwards, so a collision only loses a guess.
uint64_t Hash(std::span<const int32_t> run) {
  uint64_t hash = 14695981039346656037u;
  for (const int32_t token : run) hash = (hash ^ static_cast<uint32_t>(token)) * 1099511628211u;
  return hash;
}

}  // namespace

uint32_t Drafter::Follow(std::span<const int32_t> tokens, size_t size, Index& index) const {
  uint32_t before = 0;
  for (size_t end = std::max(seen_ + 1, size); end <= tokens.size(); ++end) {
    uint32_t& place = index[Hash(tokens.subspan(end - size, size))];
    before = place;
    place = static_cast<uint32_t>(end);
  }
  const bool same = before >= size && std::equal(tokens.end() - static_cast<std::ptrdiff_t>(size), tokens.end(),
                                                 tokens.begin() + static_cast<std::ptrdiff_t>(before - size));
  return same ? before : 0;
}

std::vector<int32_t> Drafter::Draft(std::span<const int32_t> tokens) {
  if (tokens.size() <= seen_) return {};
  const uint32_t far = Follow(tokens, kLong, long_);
  const uint32_t near = Follow(tokens, kShort, short_);
  seen_ = tokens.size();
  const uint32_t from = far > 0 ? far : near;
  if (from == 0) return {};
  const size_t count = std::min<size_t>(length_.next(most_), tokens.size() - from);
  const auto followed = tokens.subspan(from, count);
  return {followed.begin(), followed.end()};
}

}  // namespace tokenloop
