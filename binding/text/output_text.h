// From the bytes of sampled tokens to the text that a request may publish: UTF-8 first, then stop strings. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/stop_matcher.h"
#include "text/utf8.h"

namespace tokenloop {

class OutputText {
 public:
  explicit OutputText(const std::vector<std::string>& stops) : stops_(stops) {}

  // Appends what may be published to `out`; true when a stop string ended the text.
  bool Push(std::string_view bytes, std::string& out) {
    scratch_.clear();
    utf8_.Push(bytes, scratch_);
    return stops_.Push(scratch_, out);
  }

  // The generation is over: publishes what was held back. True when the last bytes completed a stop string.
  bool Finish(std::string& out) {
    scratch_.clear();
    utf8_.Finish(scratch_);
    const bool stopped = stops_.Push(scratch_, out);
    stops_.Finish(out);
    return stopped;
  }

  // Bytes that wait: for the rest of a character, or of a stop string. At least as many as came in for them.
  size_t held() const { return utf8_.held() + stops_.held(); }

  int matched_stop() const { return stops_.matched(); }

 private:
  Utf8Holder utf8_;
  StopMatcher stops_;
  std::string scratch_;
};

}  // namespace tokenloop
