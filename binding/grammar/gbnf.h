// llama.cpp's grammar notation (GBNF) → Program. Pure. Never throws on input, never recurses on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "grammar/program.h"

namespace tokenloop::grammar {

// What a grammar text may hold. Above it the text is refused, with the place.
struct GbnfLimits {
  size_t bytes = size_t{1} << 20;
  size_t rules = 20'000;
  size_t depth = 1'000;            // of nested parentheses
  uint32_t repetitions = 100'000;  // m and n of {m,n}
  size_t nodes = size_t{4} << 20;  // of the compiled program
};

struct GbnfError {
  std::string message;
  // From 1; the column counts characters, not bytes.
  uint32_t line = 0;
  uint32_t column = 0;
};

struct GbnfResult {
  std::shared_ptr<const Program> program;  // null when there is an error
  GbnfError error;
};

// The start rule is "root". Refused beside faults of notation: a rule that is defined twice or not at all, left
// recursion, token references by text (`<think>`; by id, `<[151667]>`, they are fine), classes that nothing can match.
GbnfResult ParseGbnf(std::string_view text, const GbnfLimits& limits = {});

}  // namespace tokenloop::grammar
