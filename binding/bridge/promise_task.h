// The one base of everything that returns a promise: work on a native thread, then settle on the JavaScript thread.
#pragma once

#include <napi.h>

#include <memory>
#include <utility>

#include "bridge/environment.h"
#include "bridge/errors.h"
#include "engine/process.h"
#include "engine/thread.h"

namespace tokenloop {

// A subclass overrides Execute (native thread, no JavaScript) and Resolve (JavaScript thread). It is started either on
// a thread of its own (StartThread) or by whoever calls Run on some other native thread.
class PromiseTask : public Stoppable, public std::enable_shared_from_this<PromiseTask> {
 public:
  explicit PromiseTask(Napi::Env env)
      : environment_(Environment::Of(env)), deferred_(Napi::Promise::Deferred::New(env)) {}

  // Also where the environment ends before the task has settled: its thread is joined by then.
  ~PromiseTask() override {
    if (listed_) UnlistStoppable(this);
  }

  Napi::Promise promise() const { return deferred_.Promise(); }

  // JavaScript thread. The task is kept by the environment until it has settled.
  void StartThread() {
    Begin();
    ListStoppable(this);
    listed_ = true;
    if (!thread_.Start([this] { Run(); })) {
      failure_ = Failure{"out_of_memory", 500, "", "No native thread could be started."};
      PostSettle();
    }
  }
  // JavaScript thread; somebody calls Run or RunFailed later, once.
  void Begin() {
    environment_.AddActive();
    environment_.Keep(shared_from_this());
  }

  // Native thread.
  void Run() {
    if (auto failure = Execute()) failure_ = std::move(failure);
    PostSettle();
  }
  void RunFailed(Failure failure) {
    failure_ = std::move(failure);
    PostSettle();
  }

  void StopAndJoin() override {
    RequestStop();
    thread_.Join();
  }

 protected:
  // Returns the failure, if any. Must not throw.
  virtual std::optional<Failure> Execute() = 0;
  virtual void Resolve(Napi::Env env, const Napi::Promise::Deferred& deferred) = 0;
  // Called on the JavaScript thread when the task failed, before the promise is rejected.
  virtual void Rejected(Napi::Env) {}
  // Asks Execute to return early. Any thread.
  virtual void RequestStop() {}

  Environment& environment() { return environment_; }

 private:
  void PostSettle() {
    // The completion must not keep the task: it may be dropped on a native thread, and the task holds JavaScript
    // references. The environment keeps it.
    environment_.Post([this](Napi::Env env) { Settle(env); });
  }

  void Settle(Napi::Env env) {
    const std::shared_ptr<PromiseTask> self = shared_from_this();
    thread_.Join();
    if (failure_) {
      Rejected(env);
      deferred_.Reject(ToError(env, *failure_).Value());
    } else {
      Resolve(env, deferred_);
    }
    environment_.Drop(self);
    environment_.ReleaseActive();
  }

  Environment& environment_;
  const Napi::Promise::Deferred deferred_;
  std::optional<Failure> failure_;
  Thread thread_;
  bool listed_ = false;
};

}  // namespace tokenloop
