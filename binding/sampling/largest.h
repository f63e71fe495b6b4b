// The largest of the logits, found without touching each one twice: with 152k of them that is what sampling costs.
// Any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "llama.h"

namespace tokenloop {

// The tokens that count: bit `id` % 64 of word `id` / 64, and no bit beyond the last token. Empty: all of them.
using TokenBits = std::span<const uint64_t>;

// Id of the largest logit, the first of equals; LLAMA_TOKEN_NULL when none is above -infinity. NaN never wins.
llama_token FirstOfLargest(std::span<const float> logits, TokenBits allowed = {});

// The `count` largest, largest first, into `out` (fewer where fewer are above -infinity). Of equals, the first ones.
void SelectLargest(std::span<const float> logits, TokenBits allowed, uint32_t count,
                   std::vector<llama_token_data>& out);

// Calls `visit(id)` for each bit of a word whose first one is `base`, ascending.
template <typename Visit>
void ForEachBit(uint64_t word, size_t base, Visit visit) {
  for (; word != 0; word &= word - 1) visit(base + static_cast<size_t>(std::countr_zero(word)));
}

}  // namespace tokenloop
