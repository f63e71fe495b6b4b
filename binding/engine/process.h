// What lives once per process: llama.cpp's backends, its log, and the list of everything that must stop before exit.
#pragma once

#include <string>

namespace tokenloop {

// Something with threads that must not run while the process is torn down.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  // Ends the threads and returns when they are joined. Any thread, any number of times.
  virtual void StopAndJoin() = 0;
};

// process.exit() runs C++ destructors of statics while native threads still use them, and Node runs no environment
// cleanup hooks on that way out (main thread). So every Stoppable is listed here, and an atexit handler stops them all.
// The handler is registered anew after each model load, since handlers and destructors run in reverse order of
// registration and construction: it must come before the destructors of statics that the load constructed.
void ListStoppable(Stoppable* stoppable);
void UnlistStoppable(Stoppable* stoppable);
void RegisterExitHandler();

// Initialises llama.cpp's backends and quietens its log. Idempotent, any thread.
void InitialiseProcess();

// llama.cpp's log arrives here: level as in ggml_log_level. Any thread.
void CaptureLog(int level, const char* message);

// Collects llama.cpp's warnings and errors that are logged on this thread while it lives: the only place where the
// reason of a failed load can be read.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  // The last lines, without llama.cpp's function-name prefixes.
  std::string text() const { return text_; }

 private:
  friend void CaptureLog(int level, const char* message);
  std::string text_;
  LogCapture* previous_;
};

}  // namespace tokenloop
