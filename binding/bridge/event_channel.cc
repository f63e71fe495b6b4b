#include "bridge/event_channel.h"

#include <algorithm>

#include "text/utf8.h"

namespace tokenloop {

void EventChannel::Publish(std::span<const Event> events) {
  {
    const std::lock_guard lock(mutex_);
    for (const Event& event : events) {
      const bool ascii = IsAscii(event.text);
      const size_t start = text_units_;
      text_units_ += ascii ? event.text.size() : Utf16Length(event.text);
      ascii_ = ascii_ && ascii;
      text_ += event.text;
      records_.insert(records_.end(),
                      {static_cast<int32_t>(event.request), 0, static_cast<int32_t>(event.kind), event.value,
                       static_cast<int32_t>(start), static_cast<int32_t>(text_units_)});
    }
  }
  environment_.RingFor(shared_from_this());
}

void EventChannel::Deliver(Napi::Env env) {
  std::string text;
  std::vector<int32_t> records;
  bool ascii = true;
  {
    const std::lock_guard lock(mutex_);
    text.swap(text_);
    records.swap(records_);
    ascii = ascii_;
    ascii_ = true;
    text_units_ = 0;
  }
  if (records.empty() || on_events_.IsEmpty()) return;

  for (size_t at = 0; at < records.size(); at += 6) {
    const auto kind = static_cast<EventKind>(records[at + 2]);
    if (kind == EventKind::kFinished || kind == EventKind::kFailed) environment_.ReleaseActive();
  }
  napi_value string = nullptr;
  if (ascii) {
    napi_create_string_latin1(env, text.data(), text.size(), &string);
  } else {
    napi_create_string_utf8(env, text.data(), text.size(), &string);
  }
  Napi::Int32Array array = Napi::Int32Array::New(env, records.size());
  std::copy(records.begin(), records.end(), array.Data());
  on_events_.Call({string, array});
  if (env.IsExceptionPending()) {
    // The façade's handler does not throw; should it, the error must surface as an uncaught exception of the process.
    const Napi::Error error = env.GetAndClearPendingException();
    napi_fatal_exception(env, error.Value());
  }
}

}  // namespace tokenloop
