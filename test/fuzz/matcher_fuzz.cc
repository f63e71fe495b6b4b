// A grammar, then after a zero byte a text, then perhaps another zero byte and a marker: the matcher and its masks
// agree with each other however the text is cut into pieces. `npm run fuzz`.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/lazy.h"
#include "grammar/mask.h"
#include "grammar/matcher.h"
#include "grammar/vocabulary.h"

namespace {

using tokenloop::grammar::GbnfError;
using tokenloop::grammar::Grammar;
using tokenloop::grammar::GrammarState;
using tokenloop::grammar::LazyGrammar;
using tokenloop::grammar::LazyMasker;
using tokenloop::grammar::LazyState;
using tokenloop::grammar::Masker;
using tokenloop::grammar::Vocabulary;

constexpr size_t kMostText = 64;
// Masks are compared with the matcher before so many bytes at most.
constexpr size_t kMostMasks = 12;

void Check(bool holds) {
  if (!holds) std::abort();
}

// Characters whole and cut, ill-formed bytes, tokens that cross what grammars tell apart, and tokens without text.
const std::vector<std::string>& Pieces() {
  static const std::vector<std::string> pieces = [] {
    std::vector<std::string> list = {"", "\xC3", "\xA9", "\xF0\x9F", "\x98\x80", "\xED\xA0", "\xFF", "\xC3\xA9", ""};
    for (char c = ' '; c <= '~'; ++c) list.emplace_back(1, c);
    for (const char* text : {"\n",
                             "\t",
                             "ab",
                             "aa",
                             "aaa",
                             "aaaa",
                             "abab",
                             "ba",
                             "{\"",
                             "\":",
                             "\",\"",
                             "[[",
                             "]]",
                             "}}",
                             "12",
                             "0.5",
                             "e+1",
                             "true",
                             "null",
                             "\\u00",
                             "\\n",
                             "a\xC3\xA9",
                             "\xF0\x9F\x98\x80",
                             "aaaaaaaaaaaaaaaa",
                             "((",
                             "))",
                             "x)",
                             "the ",
                             " a",
                             ", "}) {
      list.emplace_back(text);
    }
    return list;
  }();
  return pieces;
}

const std::shared_ptr<const Vocabulary>& SharedVocabulary() {
  static const auto vocabulary = std::make_shared<const Vocabulary>(Pieces());
  return vocabulary;
}

bool Has(const std::vector<uint64_t>& mask, uint32_t id) { return ((mask[id / 64] >> (id % 64)) & 1) != 0; }

// What a mask says of each token is what the matcher says; only a token behind which the grammar is too ambiguous to be
// followed may be in the mask as well.
template <typename State>
void CheckMask(const std::vector<uint64_t>& mask, bool whole, const State& state) {
  for (uint32_t id = 0; id < Pieces().size(); ++id) {
    State next = state;
    const bool taken = next.AcceptToken(id, Pieces()[id]);
    if (taken == Has(mask, id)) continue;
    if (taken) {
      Check(!whole);
      continue;
    }
    if constexpr (requires { next.overflowed(); }) {
      Check(next.overflowed());
    } else {
      Check(next.started() && next.state().overflowed());
    }
  }
}

void CheckLazy(const std::shared_ptr<const Grammar>& grammar, std::string_view text, std::string_view marker) {
  for (const auto from : {LazyGrammar::From::kMarker, LazyGrammar::From::kBehindMarker}) {
    const auto lazy = LazyGrammar::Create(grammar, {std::string(marker)}, from);
    if (!lazy) continue;
    LazyMasker masker(lazy, std::make_shared<Masker>(grammar, SharedVocabulary()));
    LazyState state(lazy);
    LazyState other(lazy);
    std::vector<uint64_t> mask(SharedVocabulary()->words());
    bool alive = true;
    for (size_t at = 0; at < text.size() && alive; ++at) {
      if (at < kMostMasks) CheckMask(mask, masker.Compute(state, mask), state);
      alive = state.AcceptBytes(text.substr(at, 1));
    }
    if (alive) {
      Check(other.AcceptBytes(text));
      Check(other.started() == state.started() && other.CanEnd() == state.CanEnd());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(input.find('\0'), input.size());
  std::string_view text = input.substr(std::min(cut + 1, input.size()));
  std::string_view marker;
  if (const size_t second = text.find('\0'); second != std::string_view::npos) {
    marker = text.substr(second + 1);
    text = text.substr(0, second);
  }
  text = text.substr(0, kMostText);
  GbnfError error;
  const auto grammar = Grammar::Parse(input.substr(0, cut), error);
  if (!grammar) return 0;

  Masker masker(grammar, SharedVocabulary());
  GrammarState state = grammar->Start();
  std::vector<uint64_t> mask(SharedVocabulary()->words());
  std::vector<uint64_t> again(mask.size());
  size_t masks = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (masks < kMostMasks) {
      const bool whole = masker.Compute(state, mask);
      CheckMask(mask, whole, state);
      if (whole) {
        // From the cache, and from a masker that has seen nothing else.
        Check(masker.Compute(state, again) && again == mask);
        if (masks % 4 == 3) Check(!Masker(grammar, SharedVocabulary()).Compute(state, again) || again == mask);
      }
      ++masks;
    }
    // The rest in one piece, and in two, is what it is byte by byte.
    GrammarState whole = state;
    GrammarState cut_in_two = state;
    GrammarState bytes = state;
    const std::string_view rest = text.substr(at);
    const bool taken = whole.AcceptBytes(rest);
    cut_in_two.AcceptBytes(rest.substr(0, rest.size() / 2));
    cut_in_two.AcceptBytes(rest.substr(rest.size() / 2));
    for (const char byte : rest) bytes.Accept(static_cast<uint8_t>(byte));
    Check(taken == !whole.dead());
    Check(whole == bytes && whole == cut_in_two && whole.hash() == bytes.hash());
    Check(!whole.overflowed() || whole.dead());
    if (at == text.size()) break;
    if (!state.Accept(static_cast<uint8_t>(text[at]))) {
      // What is dead stays so.
      Check(state.dead() && !state.CanEnd() && !state.Accept('a') && state.dead());
      break;
    }
  }
  if (!marker.empty() && marker.size() <= 16) CheckLazy(grammar, text, marker);
  return 0;
}
