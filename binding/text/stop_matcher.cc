#include "text/stop_matcher.h"

namespace tokenloop {

bool StopMatcher::Push(std::string_view text, std::string& out) {
  if (stopped()) return true;
  if (automaton_.empty()) {
    out.append(text);
    return false;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    node_ = automaton_.Next(node_, static_cast<unsigned char>(text[i]));
    const int32_t match = automaton_.match(node_);
    if (match < 0) continue;
    held_.append(text.substr(0, i + 1));
    out.append(held_, 0, held_.size() - automaton_.pattern_length(match));
    held_.clear();
    matched_ = match;
    return true;
  }
  // The node's depth is the longest tail that begins a stop string. Both are well-formed UTF-8, so the cut falls
  // between characters.
  held_.append(text);
  const size_t certain = held_.size() - automaton_.depth(node_);
  out.append(held_, 0, certain);
  held_.erase(0, certain);
  return false;
}

void StopMatcher::Finish(std::string& out) {
  if (!stopped()) out.append(held_);
  held_.clear();
  node_ = AhoCorasick::kRoot;
}

}  // namespace tokenloop
