#include "engine/thread.h"

#include <utility>

#ifdef _WIN32
#include <process.h>
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace tokenloop {

#ifdef _WIN32

struct Thread::Handle {
  HANDLE thread = nullptr;
};

namespace {
unsigned __stdcall Run(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return 0;
}
}  // namespace

bool Thread::Start(std::function<void()> body) {
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  const uintptr_t thread = _beginthreadex(nullptr, static_cast<unsigned>(kThreadStackBytes), Run, owned.get(),
                                          STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  if (thread == 0) return false;
  static_cast<void>(owned.release());  // the thread owns it now
  handle_.reset(new Handle{reinterpret_cast<HANDLE>(thread)});
  return true;
}

void Thread::Join() {
  if (!handle_) return;
  WaitForSingleObject(handle_->thread, INFINITE);
  CloseHandle(handle_->thread);
  handle_.reset();
}

#else

struct Thread::Handle {
  pthread_t thread;
};

namespace {
void* Run(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}
}  // namespace

bool Thread::Start(std::function<void()> body) {
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, kThreadStackBytes);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, Run, owned.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) return false;
  static_cast<void>(owned.release());  // the thread owns it now
  handle_.reset(new Handle{thread});
  return true;
}

void Thread::Join() {
  if (!handle_) return;
  pthread_join(handle_->thread, nullptr);
  handle_.reset();
}

#endif

void Thread::Deleter::operator()(Handle* handle) const { delete handle; }

}  // namespace tokenloop
