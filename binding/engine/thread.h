// Threads with an explicit stack. llama.cpp's tokenisers and template engine recurse over input: a default stack (512
// KiB on macOS) is not enough.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tokenloop {

constexpr size_t kThreadStackBytes = size_t{16} << 20;

// Joins in its destructor. Start and Join belong to one owner thread; Join may be called from any other thread than the
// one started.
class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { Join(); }

  // Runs `body` with a stack of kThreadStackBytes. `body` must not throw. Returns false when the system has no thread
  // to give.
  bool Start(std::function<void()> body);
  // Waits until `body` has returned. Without effect if it never started or was joined.
  void Join();

 private:
  struct Handle;
  struct Deleter {
    void operator()(Handle* handle) const;
  };
  std::unique_ptr<Handle, Deleter> handle_;
};

}  // namespace tokenloop
