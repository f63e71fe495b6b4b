#include "text/utf8.h"

#include <algorithm>

namespace tokenloop {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

enum class Step { kComplete, kIncomplete, kInvalid };

struct Scan {
  Step step;
  size_t length;  // complete: bytes of the character; invalid: bytes to replace; incomplete: bytes seen
};

// Looks at the character that begins at bytes[0] (Unicode table 3-7: well-formed byte sequences).
Scan ScanCharacter(const unsigned char* bytes, size_t size) {
  const unsigned char lead = bytes[0];
  if (lead < 0x80) return {Step::kComplete, 1};
  size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {Step::kInvalid, 1};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i >= size) return {Step::kIncomplete, i};
    if (bytes[i] < low || bytes[i] > high) return {Step::kInvalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Step::kComplete, length};
}

}  // namespace

void Utf8Holder::Push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (held_ > 0) {
    joined.assign(pending_, held_);
    joined.append(bytes);
    bytes = joined;
    held_ = 0;
  }
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t position = 0;
  size_t copied = 0;  // everything before this is in `out`
  while (position < bytes.size()) {
    const Scan scan = ScanCharacter(data + position, bytes.size() - position);
    if (scan.step == Step::kComplete) {
      position += scan.length;
      continue;
    }
    out.append(bytes.substr(copied, position - copied));
    if (scan.step == Step::kIncomplete) {
      held_ = scan.length;
      std::copy_n(bytes.data() + position, held_, pending_);
      return;
    }
    out.append(kReplacement);
    position += scan.length;
    copied = position;
  }
  out.append(bytes.substr(copied));
}

void Utf8Holder::Finish(std::string& out) {
  if (held_ > 0) out.append(kReplacement);
  held_ = 0;
}

size_t Utf16Length(std::string_view utf8) {
  size_t units = 0;
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    // One unit per character, two for those of four bytes (beyond the BMP); continuation bytes count nothing.
    units += (byte & 0xC0) != 0x80 ? 1 : 0;
    units += byte >= 0xF0 ? 1 : 0;
  }
  return units;
}

bool IsAscii(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace tokenloop
