// Events on their way from the loop thread to whoever reads them, packed: one text and records that point into it
// (src/native.ts, recordSize). Pure. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/types.h"

namespace tokenloop {

class EventQueue {
 public:
  static constexpr size_t kRecordSize = 6;

  struct Batch {
    std::string text;              // well-formed UTF-8
    bool ascii = true;             // every byte is below 0x80
    std::vector<int32_t> records;  // offsets into the text count UTF-16 units
  };

  void Push(std::span<const Event> events);
  // Everything since the last call.
  Batch Take();

 private:
  std::mutex mutex_;  // guards what follows
  Batch batch_;
  size_t units_ = 0;  // UTF-16 units of the text
};

}  // namespace tokenloop
