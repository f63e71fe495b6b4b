#include "engine/process.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"
#include "log.h"

namespace tokenloop {
namespace {

struct Registry {
  std::recursive_mutex mutex;
  std::vector<Stoppable*> stoppables;
};

// Never destroyed: threads may list themselves until the very end.
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

extern "C" void StopEverything() {
  Registry& registry = TheRegistry();
  // Holding the lock keeps each one alive while it is stopped: it unlists itself in its destructor.
  const std::lock_guard lock(registry.mutex);
  const std::vector<Stoppable*> stoppables = registry.stoppables;
  for (Stoppable* stoppable : stoppables) stoppable->StopAndJoin();
}

thread_local LogCapture* current_capture = nullptr;

constexpr size_t kCaptureBytes = 2000;

// "llama_kv_cache:        CPU KV buffer size =    32.00 MiB"
void CountBuffer(const std::string& line, MemoryUse& memory) {
  constexpr std::string_view kMarker = " buffer size = ";
  const size_t marker = line.find(kMarker);
  if (marker == std::string::npos) return;
  const auto bytes =
      static_cast<uint64_t>(std::max(0.0, std::strtod(line.c_str() + marker + kMarker.size(), nullptr)) * 1024 * 1024);
  const std::string before = line.substr(0, marker);
  const auto ends = [&](std::string_view word) { return before.ends_with(word); };
  if (ends(" model")) {
    memory.weights += bytes;
  } else if (ends(" compute")) {
    memory.compute += bytes;
  } else if (ends(" output")) {
    memory.output += bytes;
  } else if (ends(" KV") || ends(" RS") || ends(" state")) {
    memory.cache += bytes;
  }
}

void OnLog(ggml_log_level level, const char* message, void*) { CaptureLog(static_cast<int>(level), message); }

}  // namespace

void CaptureLog(int level, const char* message) {
  if (current_capture == nullptr || message == nullptr) return;
  if (level == GGML_LOG_LEVEL_INFO) CountBuffer(message, current_capture->memory_);
  if (level < GGML_LOG_LEVEL_WARN) return;
  std::string line = message;
  // "llama_model_load: error loading model: ..." -> "error loading model: ..."
  const size_t colon = line.find(": ");
  if (colon != std::string::npos && line.find(' ') > colon) line.erase(0, colon + 2);
  std::string& text = current_capture->text_;
  text += line;
  if (text.size() > kCaptureBytes) text.erase(0, text.size() - kCaptureBytes);
}

LogCapture::LogCapture() : previous_(current_capture) { current_capture = this; }
LogCapture::~LogCapture() { current_capture = previous_; }

void ListStoppable(Stoppable* stoppable) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.stoppables.push_back(stoppable);
}

void UnlistStoppable(Stoppable* stoppable) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  std::erase(registry.stoppables, stoppable);
}

void RegisterExitHandler() {
#ifndef _WIN32
  std::atexit(StopEverything);
#endif
}

void InitialiseProcess() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(OnLog, nullptr);
    common_log_set_verbosity_thold(-1);
    llama_backend_init();
    // Constructs ggml's device registry now, so that it is destroyed after our exit handler ran.
    static_cast<void>(ggml_backend_dev_count());
    RegisterExitHandler();
  });
}

}  // namespace tokenloop
