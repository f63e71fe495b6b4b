// The way of an engine's events to JavaScript: packed on the loop thread, taken whole on the JavaScript thread.
#pragma once

#include <napi.h>

#include <memory>
#include <span>

#include "bridge/environment.h"
#include "engine/event_queue.h"
#include "engine/types.h"

namespace tokenloop {

// Whatever the engine publishes between two turns of the event loop is merged: one call into JavaScript brings one
// string with all text and one Int32Array of records that point into it (src/native.ts, recordSize).
class EventChannel : public EventSink, public Deliverable, public std::enable_shared_from_this<EventChannel> {
 public:
  // JavaScript thread.
  EventChannel(Environment& environment, const Napi::Function& on_events)
      : environment_(environment), on_events_(Napi::Persistent(on_events)) {}

  // Loop thread.
  void Publish(std::span<const Event> events) override;
  // JavaScript thread.
  void Deliver(Napi::Env env) override;
  // JavaScript thread: drops the callback. Later events are discarded.
  void Close() { on_events_.Reset(); }

 private:
  Environment& environment_;
  Napi::FunctionReference on_events_;
  EventQueue queue_;
};

}  // namespace tokenloop
