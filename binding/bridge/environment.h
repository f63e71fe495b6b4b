// What belongs to one JavaScript environment (the main thread, or a worker): its doorbell, the engines it loaded, the
// tasks it waits for.
//
// Rules of lifetime:
// 1. There is one ThreadSafeFunction per environment and it is only a doorbell: the queues behind it are ours. Native
//    threads ring it through Post and RingFor; both do nothing once the environment is closing.
// 2. The cleanup hook first stops and joins every thread that could ring, then releases the ThreadSafeFunction. Nothing
//    rings after that, so no call can reach a freed environment.
// 3. References to JavaScript values are made and dropped on the JavaScript thread only.
// 4. process.exit() runs no cleanup hooks on the main thread, and C++ destructors of statics run while native threads
//    still use them. So the environment also listens to the process's "exit" event and stops its threads there.
// 5. The doorbell is referenced while some request or task is unfinished, so an idle engine does not keep the process.
#pragma once

#include <napi.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/process.h"

namespace tokenloop {

// Something that has news for the JavaScript thread.
class Deliverable {
 public:
  virtual ~Deliverable() = default;
  // JavaScript thread.
  virtual void Deliver(Napi::Env env) = 0;
};

class Environment {
 public:
  using Completion = std::function<void(Napi::Env)>;

  // Creates the doorbell, the cleanup hook and the exit listener. JavaScript thread.
  explicit Environment(Napi::Env env);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  static Environment& Of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

  // Runs `completion` on the JavaScript thread. Any thread; dropped when the environment is closing.
  void Post(Completion completion);
  // Makes the JavaScript thread call `source->Deliver` soon. Any thread.
  void RingFor(const std::shared_ptr<Deliverable>& source);

  // Things with threads, stopped by the cleanup hook. JavaScript thread.
  void Keep(std::shared_ptr<Stoppable> stoppable);
  void Drop(const std::shared_ptr<Stoppable>& stoppable);

  // More reasons, or one fewer, to keep the process alive. JavaScript thread.
  void AddActive(uint32_t count = 1);
  void ReleaseActive();

 private:
  static void Cleanup(void* self);
  void StopAll();
  void Drain(Napi::Env env);
  void Ring();

  Napi::Env env_;
  Napi::ThreadSafeFunction doorbell_;
  uint32_t active_ = 0;
  std::set<std::shared_ptr<Stoppable>> kept_;

  std::mutex mutex_;  // guards what follows
  std::vector<Completion> completions_;
  std::vector<std::shared_ptr<Deliverable>> sources_;
  bool rung_ = false;
  bool closing_ = false;
};

}  // namespace tokenloop
