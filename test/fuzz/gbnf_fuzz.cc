// Any bytes as a grammar: refused with a place in the text, or a program that can be started. `npm run fuzz`.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "grammar/gbnf.h"
#include "grammar/matcher.h"

namespace {

using tokenloop::grammar::GbnfError;
using tokenloop::grammar::GbnfLimits;
using tokenloop::grammar::Grammar;

void Check(bool holds) {
  if (!holds) std::abort();
}

// True when `text` is taken.
bool Parse(std::string_view text, const GbnfLimits& limits) {
  GbnfError error;
  const auto grammar = Grammar::Parse(text, error, limits);
  if (grammar) {
    Check(!grammar->Start().dead());
    return true;
  }
  Check(!error.message.empty() && error.line >= 1 && error.column >= 1);
  // The place is one of the text, or its end.
  uint32_t lines = 1;
  for (const char c : text) lines += c == '\n' ? 1 : 0;
  Check(error.line <= lines && error.column <= text.size() + 1);
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool taken = Parse(text, {});
  GbnfLimits narrow;
  narrow.bytes = 400;
  narrow.rules = 4;
  narrow.depth = 3;
  narrow.repetitions = 9;
  narrow.nodes = 120;
  // A limit refuses more, never less.
  if (Parse(text, narrow)) Check(taken);
  return 0;
}
