// Plain data that crosses between the engine's threads and the bridge. Knows neither llama.h nor napi.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tokenloop {

// An error as a value: `code` is stable, `status` is the HTTP status it maps to, `param` names the request field or is
// empty.
struct Failure {
  std::string code;
  int status = 500;
  std::string param;
  std::string message;
  // When to try again, in milliseconds; 0: nothing is known.
  uint32_t retry_after_ms = 0;
};

template <typename T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Failure failure) : state_(std::move(failure)) {}
  explicit operator bool() const { return state_.index() == 0; }
  T& value() { return std::get<0>(state_); }
  const Failure& failure() const { return std::get<1>(state_); }

 private:
  std::variant<T, Failure> state_;
};

// The sampling rows of the option table (src/options.ts), by the same names and with the same defaults.
struct SamplingParams {
  float temperature = 0.8f;
  int32_t top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  float typical_p = 1.0f;
  float repeat_penalty = 1.0f;
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  int32_t repeat_last_n = 64;
  int32_t mirostat = 0;
  float mirostat_tau = 5.0f;
  float mirostat_eta = 0.1f;
  float top_n_sigma = -1.0f;
  float xtc_probability = 0.0f;
  float xtc_threshold = 0.1f;
  float dynatemp_range = 0.0f;
  float dynatemp_exponent = 1.0f;
  float dry_multiplier = 0.0f;
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = 64;
  int32_t min_keep = 0;
  std::optional<uint32_t> seed;  // absent: drawn
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  // Which ones run, in order, by llama.cpp's names.
  std::vector<std::string> samplers = {"penalties", "dry",   "top_n_sigma", "top_k",      "typ_p",
                                       "top_p",     "min_p", "xtc",         "temperature"};
  bool ignore_eos = false;  // tokens that end generation are never drawn
  int32_t min_tokens = 0;   // nor are they before so many tokens
};

struct RequestSpec {
  // Exactly one of the three.
  std::optional<std::string> messages;                // JSON array, for the chat template
  std::optional<std::string> prompt;                  // raw text, special tokens parsed
  std::optional<std::vector<int32_t>> prompt_tokens;  // as they are
  int32_t max_tokens = -1;                            // -1: until the context is full
  std::vector<std::string> stop;
  int32_t logprobs = -1;     // most likely tokens to report beside each chosen one, 0..20; -1: no logprobs
  uint32_t n = 1;            // answers to the same prompt
  std::string grammar;       // GBNF that the answer follows; empty: none
  bool cache_prompt = true;  // may use cells of others, and leave its own
  std::string cache_key;     // requests of different keys never share cells
  int32_t priority = 0;      // smaller ones are served first
  uint32_t timeout_ms = 0;   // from submission to the last event; 0: none
  // Most milliseconds from the first token on, once a line has ended; 0: none.
  uint32_t predict_ms = 0;
  SamplingParams sampling;
};

enum class FlashAttention { kAuto, kOn, kOff };

struct EngineConfig {
  std::string model;
  uint32_t context_size = 0;
  uint32_t parallel = 8;
  uint32_t batch_size = 2048;
  uint32_t micro_batch_size = 512;
  uint32_t threads = 0;
  uint32_t threads_batch = 0;
  int32_t gpu_layers = -1;
  uint32_t queue_size = 512;
  double step_target_ms = 50;
  bool prefix_cache = true;
  // Threads beside the loop's own that compute masks and sample; absent: what the decode's threads leave free.
  std::optional<uint32_t> sampling_threads;
  uint32_t stream_buffer = 256 * 1024;  // unread bytes at which an answer pauses
  uint32_t stall_timeout_ms = 60000;    // how long it may stay paused; 0: for ever
  std::string draft_model;              // a file; empty: guesses come from n-grams
  uint32_t draft_tokens = 0;            // most tokens guessed from what was said before; 0: none
  bool mmap = true;
  bool mlock = false;
  FlashAttention flash_attention = FlashAttention::kAuto;
  std::string chat_template;
};

// Bytes by what they are for.
struct MemoryUse {
  uint64_t weights = 0;
  uint64_t cache = 0;    // KV cells, and the states of recurrent layers
  uint64_t compute = 0;  // scratch of the graphs
  uint64_t output = 0;   // logits
};

struct ModelInfo {
  std::string description;
  std::string name;
  std::string chat_template;
  uint64_t parameters = 0;
  uint64_t size = 0;
  uint32_t vocab_size = 0;
  uint32_t training_context = 0;
  uint32_t context_size = 0;
  uint32_t parallel = 0;
  uint32_t sequences = 0;  // that the context can hold: running and kept ones
  uint32_t batch_size = 0;
  uint32_t micro_batch_size = 0;
  bool divisible = true;     // cells can be taken back one by one; the state of a recurrent model cannot
  uint32_t window = 0;       // tokens that some layer looks back on; 0: each layer on all
  uint64_t fingerprint = 0;  // tells the model's file and llama.cpp's build from others
  uint32_t threads = 1;      // that a decode keeps busy
  MemoryUse memory;          // what llama.cpp said it allocated, draft model included
};

enum class FinishReason : int32_t { kStop = 0, kLength = 1, kCancelled = 2 };

enum class EventKind : int32_t { kPrompt = 0, kDelta = 1, kFinished = 2, kFailed = 3, kLogprobs = 4 };

// One record of the event channel; the values are described in src/native.ts.
struct Event {
  uint32_t request = 0;
  uint32_t choice = 0;
  EventKind kind = EventKind::kDelta;
  int32_t value = 0;
  std::string text;  // well-formed UTF-8
};

// Where the loop sends what happened. Called on the loop thread, at most once per step.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Publish(std::span<const Event> events) = 0;
};

// Steps by how many sequences they decoded: element i counts those with at most 2^i, and more than element i-1.
constexpr size_t kOccupancyBuckets = 9;

struct Stats {
  uint32_t queued = 0;
  uint32_t prefilling = 0;
  uint32_t decoding = 0;
  uint32_t paused = 0;
  uint64_t finished = 0;
  uint64_t cancelled_queued = 0;
  uint64_t cancelled_prefilling = 0;
  uint64_t cancelled_decoding = 0;
  uint64_t failed = 0;
  uint64_t timed_out = 0;
  uint64_t stalled = 0;
  uint32_t sequences = 0;
  uint32_t cells_used = 0;
  uint32_t cells_cached = 0;
  uint32_t cells = 0;
  uint64_t steps = 0;
  std::array<uint64_t, kOccupancyBuckets> occupancy{};
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t drafted_tokens = 0;
  uint64_t accepted_tokens = 0;
  uint64_t shared_steps = 0;
  uint32_t peak_sequences = 0;
  uint64_t preemptions = 0;
  uint64_t parkings = 0;
  uint64_t pauses = 0;
  uint64_t evictions = 0;
  double decode_ms = 0;
  double sample_ms = 0;
  double loop_ms = 0;
};

}  // namespace tokenloop
