// What a model and its context would take, asked of llama.cpp itself without allocating it. Any thread; blocks for as
// long as it takes to read the model's header and vocabulary, twice.
#pragma once

#include <string>
#include <vector>

#include "engine/types.h"

namespace tokenloop {

// Bytes on one device, and how many it has.
struct DeviceEstimate {
  std::string name;
  bool host = false;  // the CPU's memory
  uint64_t total = 0;
  uint64_t free = 0;
  MemoryUse use;
};

struct MemoryEstimate {
  uint32_t context_size = 0;
  uint32_t training_context = 0;
  uint32_t layers = 0;
  uint32_t sequences = 0;
  std::vector<DeviceEstimate> devices;
};

// Fails with code "model_not_found", "invalid_model" or "model_load_failed".
Result<MemoryEstimate> EstimateMemory(const EngineConfig& config);

// Held by whoever loads a model while it does: an estimate exchanges llama.cpp's logger, which is the whole process's.
class LoggerHold {
 public:
  LoggerHold();
  ~LoggerHold();
  LoggerHold(const LoggerHold&) = delete;
  LoggerHold& operator=(const LoggerHold&) = delete;
};

}  // namespace tokenloop
