// Stop strings over streamed text. Pure. Owned by one request, used on the loop thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/aho_corasick.h"

namespace tokenloop {

// Passes text through until a stop string is complete; text that may still become one is held back, and nothing more.
// The stop string that is complete first ends the text; of several that are complete at the same byte, the longest. So
// the result depends on the text alone, never on how it was cut into pieces.
class StopMatcher {
 public:
  explicit StopMatcher(const std::vector<std::string>& stops) : automaton_(stops) {}

  // Appends what is certain to `out`. Returns true when a stop string is complete: the text ends before it, whatever
  // follows is dropped, and no further call has an effect.
  bool Push(std::string_view text, std::string& out);
  // The end of the text: what was held back belongs to it.
  void Finish(std::string& out);

  bool stopped() const { return matched_ >= 0; }
  // Index of the stop string that ended the text, or -1.
  int matched() const { return matched_; }
  size_t held() const { return held_.size(); }

 private:
  AhoCorasick automaton_;
  AhoCorasick::Node node_ = AhoCorasick::kRoot;
  std::string held_;
  int matched_ = -1;
};

}  // namespace tokenloop
