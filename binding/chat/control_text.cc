#include "chat/control_text.h"

namespace tokenloop {
namespace {

// The first character boundary after the start of `text`.
size_t FirstCharacter(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
  return length;
}

}  // namespace

std::string ControlText::Mark(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + kMark.size());
  AhoCorasick::Node node = AhoCorasick::kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, kMark.size()) == kMark) {
      out += "\xEF\xBF\xBD";
      i += kMark.size() - 1;
      node = AhoCorasick::kRoot;
      continue;
    }
    out += text[i];
    node = automaton_.Next(node, static_cast<unsigned char>(text[i]));
    const int32_t match = automaton_.shortest_match(node);
    if (match < 0) continue;
    // The mark goes behind the first character of the shortest token that ends here: that cuts the longer ones, too.
    // Marks set earlier lie before this occurrence's start, unless two occurrences overlap; then the earlier mark
    // already cuts this one or the position below still lies inside it.
    const size_t length = automaton_.pattern_length(match);
    const size_t start = out.size() - length;
    if (out.find(kMark, start) != std::string::npos) continue;
    out.insert(start + FirstCharacter(std::string_view(out).substr(start)), kMark);
  }
  if (automaton_.depth(node) > 0) out += kMark;
  return out;
}

std::vector<std::string> ControlText::Split(std::string_view prompt) {
  std::vector<std::string> pieces;
  while (true) {
    const size_t mark = prompt.find(kMark);
    if (mark != 0 && !prompt.empty()) pieces.emplace_back(prompt.substr(0, mark));
    if (mark == std::string_view::npos) return pieces;
    prompt.remove_prefix(mark + kMark.size());
  }
}

}  // namespace tokenloop
