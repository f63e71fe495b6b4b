// One answer from the bytes of its sampled tokens to what may be published: text, and the logprobs that belong to it.
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/output_text.h"

namespace tokenloop {

// Logprobs wait until the text of their token is out: what a stop string swallows has none.
class AnswerText {
 public:
  explicit AnswerText(const std::vector<std::string>& stops) : output_(stops) {}

  // A token was sampled. `logprobs`: its entry as JSON, "" for none. Appends what may be published to `text`; true when
  // a stop string ended the answer.
  bool Push(std::string_view piece, std::string logprobs, std::string& text) {
    const uint64_t published = sampled_ - output_.held();
    sampled_ += piece.size();
    if (!logprobs.empty()) logprobs_.push_back({std::move(logprobs), sampled_});
    const size_t before = text.size();
    const bool stopped = output_.Push(piece, text);
    // After a stop string only what came before it is out.
    published_ = stopped ? published + (text.size() - before) : sampled_ - output_.held();
    return stopped;
  }

  // The generation is over: publishes what was held back. True when the last bytes completed a stop string.
  bool Finish(std::string& text) {
    const bool stopped = output_.Finish(text);
    // Without a stop string all text is out, whatever was replaced in it.
    if (output_.matched_stop() < 0) published_ = sampled_;
    return stopped;
  }

  bool has_logprobs() const { return !logprobs_.empty() && logprobs_.front().end <= published_; }
  // The oldest entry whose text is out; has_logprobs() is true.
  std::string TakeLogprobs() {
    std::string json = std::move(logprobs_.front().json);
    logprobs_.pop_front();
    return json;
  }

  // Which of the stop strings ended it; -1: none.
  int matched_stop() const { return output_.matched_stop(); }

 private:
  struct Entry {
    std::string json;
    uint64_t end;  // bytes of text up to the end of its token
  };

  OutputText output_;
  std::deque<Entry> logprobs_;
  uint64_t sampled_ = 0;
  uint64_t published_ = 0;
};

}  // namespace tokenloop
