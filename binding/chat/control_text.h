// Keeps user text from turning into control tokens. Pure but for the vocabulary it is built from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/aho_corasick.h"

namespace tokenloop {

// A chat prompt is one string in which the template's own "<|im_start|>" must become a control token and the same words
// typed by a user must not. Templates rewrite what they are given (trim, split, concatenate), so the origin of a piece
// cannot be tracked through them from outside. Instead a mark, a Unicode noncharacter, is put inside every occurrence
// of a control token's text before rendering; afterwards the prompt is cut at the marks and the pieces are tokenised
// one by one. No piece holds the whole text of the token, so it stays text; without such words the prompt is one piece
// and its tokens are exactly what they would be.
class ControlText {
 public:
  // U+FDD0: permanently not a character, so text has no use for it; an occurrence in the input becomes U+FFFD.
  static constexpr std::string_view kMark = "\xEF\xB7\x90";

  // `control_texts`: the texts of all control tokens of a vocabulary.
  explicit ControlText(const std::vector<std::string>& control_texts) : automaton_(control_texts) {}

  // `text` with marks. A text that ends in the beginning of a control token is marked at its end, so that it cannot be
  // completed by what the template or another message puts behind it.
  std::string Mark(std::string_view text) const;

  // The pieces of a rendered prompt between marks, none empty.
  static std::vector<std::string> Split(std::string_view prompt);

 private:
  AhoCorasick automaton_;
};

}  // namespace tokenloop
