// The largest of the logits, found without touching each one twice: with 152k of them that is what sampling costs.
// Any thread.
#pragma once

#include <span>
#include <vector>

#include "llama.h"

namespace tokenloop {

// Id of the largest logit, the first of equals; LLAMA_TOKEN_NULL when none is above -infinity. NaN never wins.
llama_token FirstOfLargest(std::span<const float> logits);

// The `count` largest, largest first, into `out` (fewer where fewer are above -infinity). Of equals, the first ones.
void SelectLargest(std::span<const float> logits, uint32_t count, std::vector<llama_token_data>& out);

}  // namespace tokenloop
