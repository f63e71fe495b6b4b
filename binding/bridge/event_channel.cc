#include "bridge/event_channel.h"

#include <cstring>
#include <iterator>

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
      records_.insert(records_.end(), {static_cast<int32_t>(event.request), static_cast<int32_t>(event.choice),
                                       static_cast<int32_t>(event.kind), event.value, static_cast<int32_t>(start),
                                       static_cast<int32_t>(text_units_)});
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
  napi_value array = nullptr;
  napi_value buffer = nullptr;
  void* data = nullptr;
  const size_t bytes = records.size() * sizeof(int32_t);
  // Plain Node-API, for the one place where a call may find an environment that runs no JavaScript any more.
  const auto create = ascii ? napi_create_string_latin1 : napi_create_string_utf8;
  if (create(env, text.data(), text.size(), &string) != napi_ok) return;
  if (napi_create_arraybuffer(env, bytes, &data, &buffer) != napi_ok) return;
  std::memcpy(data, records.data(), bytes);
  if (napi_create_typedarray(env, napi_int32_array, records.size(), buffer, 0, &array) != napi_ok) return;
  const napi_value arguments[] = {string, array};
  const napi_status status =
      napi_call_function(env, env.Undefined(), on_events_.Value(), std::size(arguments), arguments, nullptr);
  if (status == napi_pending_exception) {
    // The façade's handler does not throw; should it, the error must surface as an uncaught exception of the process.
    napi_value error = nullptr;
    if (napi_get_and_clear_last_exception(env, &error) == napi_ok) napi_fatal_exception(env, error);
  }
}

}  // namespace tokenloop
