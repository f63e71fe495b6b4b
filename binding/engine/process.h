// What lives once per process: llama.cpp's backends, its log, and the list of everything that must stop before exit.
#pragma once

#include <string>

#include "engine/types.h"

namespace tokenloop {

// Something with threads that must not run while the process is torn down.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  // Ends the threads and returns when they are joined. Any thread, any number of times.
  virtual void StopAndJoin() = 0;
};

// The second line of defence at exit; the first is each environment's own (bridge/environment.h). C++ destructors of
// statics run while native threads still use them, so every Stoppable is listed here and an atexit handler stops them
// all, also where the process ends without JavaScript hearing of it. It is registered when the backends are initialised
// and once more after the first load: handlers and destructors run in reverse order of registration and construction,
// and it must come before the destructors of statics that a load constructs. Not on Windows, where a library's handlers
// run after its threads were killed. Listing and unlisting happen on JavaScript threads.
void ListStoppable(Stoppable* stoppable);
void UnlistStoppable(Stoppable* stoppable);
void RegisterExitHandler();

// Initialises llama.cpp's backends and quietens its log. Idempotent, any thread.
void InitialiseProcess();

// llama.cpp's log arrives here: level as in ggml_log_level. Any thread.
void CaptureLog(int level, const char* message);

// Collects llama.cpp's warnings and errors that are logged on this thread while it lives: the only place where the
// reason of a failed load can be read. Likewise the sizes of the buffers that it allocates, to a hundredth of a MiB.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  // The last lines, without llama.cpp's function-name prefixes.
  std::string text() const { return text_; }
  const MemoryUse& memory() const { return memory_; }

 private:
  friend void CaptureLog(int level, const char* message);
  std::string text_;
  MemoryUse memory_;
  LogCapture* previous_;
};

}  // namespace tokenloop
