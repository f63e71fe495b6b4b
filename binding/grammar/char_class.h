// Character classes as byte automata. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/program.h"

namespace tokenloop::grammar {

struct CodePointRange {
  uint32_t low = 0;
  uint32_t high = 0;
};

// Sorts and joins the ranges; leaves out surrogates, which well-formed UTF-8 cannot hold. `negated`: all other
// characters instead.
std::vector<CodePointRange> NormaliseClass(std::vector<CodePointRange> ranges, bool negated);

// Adds nodes that match the UTF-8 form of one character of `ranges` (as NormaliseClass returns them), then go to
// `exit`. At every byte at most one node follows. Returns the first node.
NodeId AddClass(Program& program, const std::vector<CodePointRange>& ranges, NodeId exit);

}  // namespace tokenloop::grammar
