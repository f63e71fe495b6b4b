#include "sampling/largest.h"

#include <algorithm>
#include <limits>

namespace tokenloop {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr size_t kLanes = 16;
constexpr size_t kBlock = 8 * kLanes;
constexpr size_t kWords = kBlock / 64;
// Up to so many tokens of a block, each is looked at; above, the block's maximum comes first.
constexpr int kFew = 16;

// The maximum of a block in independent lanes, which the compiler turns into vector instructions. Comparisons with NaN
// are false, so NaN does not count.
float BlockMaximum(const float* logits) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, kLowest);
  for (size_t i = 0; i < kBlock; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      lanes[lane] = logit > lanes[lane] ? logit : lanes[lane];
    }
  }
  return *std::max_element(lanes, lanes + kLanes);
}

// As ForEachAbove below, of all logits.
template <typename Bar, typename Visit>
void ForEachAbove(std::span<const float> logits, Bar bar, Visit visit) {
  const auto search = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (logits[i] > bar()) visit(i);
    }
  };
  size_t at = 0;
  for (; at + kBlock <= logits.size(); at += kBlock) {
    if (BlockMaximum(&logits[at]) > bar()) search(at, at + kBlock);
  }
  search(at, logits.size());
}

// Calls `visit(index)` for each logit that counts and is above `bar()`, which may rise on the way. Blocks without any
// are skipped whole.
template <typename Bar, typename Visit>
void ForEachAbove(std::span<const float> logits, TokenBits allowed, Bar bar, Visit visit) {
  if (allowed.empty()) {
    ForEachAbove(logits, bar, visit);
    return;
  }
  const auto search = [&](size_t word) {
    ForEachBit(allowed[word], 64 * word, [&](size_t i) {
      if (logits[i] > bar()) visit(i);
    });
  };
  size_t word = 0;
  for (; (word + kWords) * 64 <= logits.size(); word += kWords) {
    int count = 0;
    for (size_t i = 0; i < kWords; ++i) count += std::popcount(allowed[word + i]);
    // The maximum of all is none too small for those that count.
    if (count == 0 || (count > kFew && !(BlockMaximum(&logits[word * 64]) > bar()))) continue;
    for (size_t i = 0; i < kWords; ++i) search(word + i);
  }
  for (; word * 64 < logits.size(); ++word) search(word);
}

}  // namespace

llama_token FirstOfLargest(std::span<const float> logits, TokenBits allowed) {
  float best = kLowest;
  llama_token token = LLAMA_TOKEN_NULL;
  ForEachAbove(
      logits, allowed, [&] { return best; },
      [&](size_t i) {
        best = logits[i];
        token = static_cast<llama_token>(i);
      });
  return token;
}

void SelectLargest(std::span<const float> logits, TokenBits allowed, uint32_t count,
                   std::vector<llama_token_data>& out) {
  out.clear();
  if (count == 0) return;
  // A heap with the weakest candidate on top: the smallest logit, of equals the last one.
  const auto stronger = [](const llama_token_data& a, const llama_token_data& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  ForEachAbove(
      logits, allowed, [&] { return out.size() < count ? kLowest : out.front().logit; },
      [&](size_t i) {
        if (out.size() == count) {
          std::pop_heap(out.begin(), out.end(), stronger);
          out.pop_back();
        }
        out.push_back({static_cast<llama_token>(i), logits[i], 0.0f});
        std::push_heap(out.begin(), out.end(), stronger);
      });
  std::sort_heap(out.begin(), out.end(), stronger);
}

}  // namespace tokenloop
