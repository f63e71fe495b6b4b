// UTF-8 at the edge between tokens and text. Pure: no llama.h, no napi.h. Owned by one request, used on the loop
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tokenloop {

// Turns a stream of bytes into a stream of well-formed UTF-8. A character that is not complete yet is held; a byte that
// cannot belong to any character becomes U+FFFD, one per maximal ill-formed subsequence (Unicode 15, section 3.9, "best
// practice for replacement"; the same as the WHATWG decoder), and the stream goes on. A genuine U+FFFD passes.
class Utf8Holder {
 public:
  // Appends what became decodable to `out`.
  void Push(std::string_view bytes, std::string& out);
  // The end of the stream: an incomplete character becomes one U+FFFD.
  void Finish(std::string& out);
  // Bytes held back now, 0..3.
  size_t held() const { return held_; }

 private:
  char pending_[4] = {};
  size_t held_ = 0;
};

// Number of UTF-16 code units of well-formed UTF-8: what JavaScript counts.
size_t Utf16Length(std::string_view utf8);

// True if every byte is below 0x80.
bool IsAscii(std::string_view bytes);

}  // namespace tokenloop
