#include "bridge/environment.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace tokenloop {

Environment::Environment(Napi::Env env) : env_(env) {
  const Napi::Function nothing = Napi::Function::New(env, [](const Napi::CallbackInfo&) {});
  doorbell_ = Napi::ThreadSafeFunction::New(env, nothing, "tokenloop", 0, 1);
  doorbell_.Unref(env);
  // Registered after the doorbell's own hook, hence run before it.
  napi_add_env_cleanup_hook(env, Cleanup, this);

  const Napi::Value process = env.Global().Get("process");
  if (!process.IsEmpty() && process.IsObject()) {
    const Napi::Value once = process.As<Napi::Object>().Get("once");
    if (!once.IsEmpty() && once.IsFunction()) {
      once.As<Napi::Function>().Call(process,
                                     {Napi::String::New(env, "exit"),
                                      Napi::Function::New(
                                          env, [this](const Napi::CallbackInfo&) { StopAll(); }, "tokenloopExit")});
    }
  }
}

Environment::~Environment() = default;

void Environment::Cleanup(void* data) {
  auto* self = static_cast<Environment*>(data);
  {
    const std::lock_guard lock(self->mutex_);
    self->closing_ = true;
  }
  self->StopAll();
  self->kept_.clear();
  {
    const std::lock_guard lock(self->mutex_);
    self->completions_.clear();
    self->sources_.clear();
  }
  self->doorbell_.Abort();
}

void Environment::StopAll() {
  for (const auto& stoppable : kept_) stoppable->StopAndJoin();
}

void Environment::Post(Completion completion) {
  const std::lock_guard lock(mutex_);
  if (closing_) return;
  completions_.push_back(std::move(completion));
  Ring();
}

void Environment::RingFor(const std::shared_ptr<Deliverable>& source) {
  const std::lock_guard lock(mutex_);
  if (closing_) return;
  if (std::find(sources_.begin(), sources_.end(), source) == sources_.end()) sources_.push_back(source);
  Ring();
}

// Under mutex_. One call at most is under way, however many threads ring.
void Environment::Ring() {
  if (rung_) return;
  rung_ = true;
  doorbell_.NonBlockingCall(this, [](Napi::Env env, Napi::Function, Environment* self) {
    // A null environment means that it is being torn down.
    if (static_cast<napi_env>(env) != nullptr) self->Drain(env);
  });
}

void Environment::Drain(Napi::Env env) {
  std::vector<Completion> completions;
  std::vector<std::shared_ptr<Deliverable>> sources;
  {
    const std::lock_guard lock(mutex_);
    rung_ = false;
    completions.swap(completions_);
    sources.swap(sources_);
  }
  const Napi::HandleScope scope(env);
  // Events before completions: close() resolves after the last events of its requests were seen.
  for (const auto& source : sources) source->Deliver(env);
  for (const Completion& completion : completions) {
    try {
      completion(env);
    } catch (const std::exception& error) {
      // Out of memory, most likely. The promise stays unsettled; the process must not end for it.
      Napi::Error::New(env, error.what()).ThrowAsJavaScriptException();
    }
  }
}

void Environment::Keep(std::shared_ptr<Stoppable> stoppable) { kept_.insert(std::move(stoppable)); }

void Environment::Drop(const std::shared_ptr<Stoppable>& stoppable) { kept_.erase(stoppable); }

void Environment::AddActive(uint32_t count) {
  if (active_ == 0) doorbell_.Ref(env_);
  active_ += count;
}

void Environment::ReleaseActive() {
  if (--active_ == 0) doorbell_.Unref(env_);
}

}  // namespace tokenloop
