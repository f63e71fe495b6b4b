// What a program must hold to before it may run. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "grammar/program.h"

namespace tokenloop::grammar {

// Makes every edge skip kJump nodes.
void RemoveJumps(Program& program, std::vector<NodeId>& rules);

// Sets min to 0 where a repetition's body may be empty. Returns an index of `rules` (first nodes of the rules) that can
// call itself before it has read anything, if there is one.
std::optional<size_t> FindLeftRecursion(Program& program, const std::vector<NodeId>& rules);

}  // namespace tokenloop::grammar
