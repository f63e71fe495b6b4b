#include "bridge/event_channel.h"

#include <cstring>
#include <iterator>

namespace tokenloop {

void EventChannel::Publish(std::span<const Event> events) {
  queue_.Push(events);
  environment_.RingFor(shared_from_this());
}

void EventChannel::Deliver(Napi::Env env) {
  const EventQueue::Batch batch = queue_.Take();
  const auto& [text, ascii, records] = batch;
  if (records.empty() || on_events_.IsEmpty()) return;

  for (size_t at = 0; at < records.size(); at += EventQueue::kRecordSize) {
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
