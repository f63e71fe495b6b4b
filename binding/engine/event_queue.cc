#include "engine/event_queue.h"

#include <utility>

#include "text/utf8.h"

namespace tokenloop {

void EventQueue::Push(std::span<const Event> events) {
  const std::lock_guard lock(mutex_);
  for (const Event& event : events) {
    const bool ascii = IsAscii(event.text);
    const size_t start = units_;
    units_ += ascii ? event.text.size() : Utf16Length(event.text);
    batch_.ascii = batch_.ascii && ascii;
    batch_.text += event.text;
    batch_.records.insert(
        batch_.records.end(),
        {static_cast<int32_t>(event.request), static_cast<int32_t>(event.choice), static_cast<int32_t>(event.kind),
         event.value, static_cast<int32_t>(start), static_cast<int32_t>(units_)});
  }
}

EventQueue::Batch EventQueue::Take() {
  const std::lock_guard lock(mutex_);
  units_ = 0;
  return std::exchange(batch_, {});
}

}  // namespace tokenloop
