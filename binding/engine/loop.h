// The token loop. Run() is the body of the loop thread, which alone touches the llama_context and every running
// request. Other threads reach it through Submit, Ready, Wake and Stop, which only take the inbox lock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/prefix_tree.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/types.h"

namespace tokenloop {

class TokenLoop {
 public:
  // `on_finished` is called on the loop thread after a request's last event was put into the batch to be published.
  TokenLoop(Model& model, const EngineConfig& config, EventSink& sink, std::function<void(uint32_t)> on_finished);

  // Announces a request whose prompt is being prepared. Any thread.
  void Submit(std::shared_ptr<Request> request);
  // Its prompt is prepared, or has failed. Prompt thread.
  void Ready(std::shared_ptr<Request> request, PreparedPrompt prompt);
  // Some request's `cancelled` flag was set. Any thread.
  void Wake();
  // Ends the running decode, gives every request its last event and makes Run return. Any thread.
  void Stop();
  void Run();
  // Any thread; at most one step old.
  Stats Snapshot() const;

 private:
  struct Arrival {
    std::shared_ptr<Request> request;
    std::optional<PreparedPrompt> prompt;  // absent: announced only
  };
  struct BatchEntry {
    Request* request;
    uint32_t tokens;
    int32_t output;  // index of its logits in the batch, -1: none
  };

  bool TakeInbox();  // waits for work; false when stopping
  void Absorb(Arrival arrival);
  void RemoveCancelled();
  void Admit();
  bool AwaitsPrefix(const Request& request, uint32_t available) const;
  void Start(Request& request, const PrefixTree::Match& match);
  void Advance(Request& request, uint32_t cached);
  void FreeSequence(llama_seq_id sequence);
  bool EvictOldest(llama_seq_id except = -1);
  void EvictFor(uint32_t cells);
  void Step();
  std::vector<BatchEntry> FillBatch(const StepPlan& plan);
  int32_t Decode();
  void Resynchronise(const std::vector<BatchEntry>& entries);
  void SampleOutputs(const std::vector<BatchEntry>& entries);
  void Append(Request& request, llama_token token, const float* logits);
  void PublishText(Request& request, Event event);
  void Preempt(Request& request);
  void Finish(Request& request, FinishReason reason);
  void Fail(Request& request, const Failure& failure);
  void Release(Request& request);
  void Forget();  // drops finished requests from the lists
  void PublishEvents();
  void UpdateStats();
  static bool ShouldAbort(void* self);

  Model& model_;
  llama_context* const context_;
  llama_memory_t const memory_;
  EventSink& sink_;
  const std::function<void(uint32_t)> on_finished_;
  const uint32_t cells_;
  const uint32_t parallel_;
  const uint32_t batch_size_;
  const uint32_t micro_batch_size_;

  // Inbox, under mutex_.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Arrival> inbox_;
  bool woken_ = false;
  std::atomic<bool> stopping_{false};

  // Loop thread only.
  std::vector<std::shared_ptr<Request>> preparing_;
  std::deque<std::shared_ptr<Request>> waiting_;
  std::vector<std::shared_ptr<Request>> running_;
  std::vector<llama_seq_id> free_sequences_;
  PrefixTree tree_;
  const bool keeps_;               // whether finished sequences stay for reuse
  std::deque<llama_seq_id> kept_;  // those that do, least recently used first
  uint64_t next_admission_ = 1;
  bool crowded_ = false;  // llama.cpp found no room for a batch that should have fitted
  PromptBudget budget_;
  Candidates candidates_;
  std::vector<float> masked_;
  std::vector<Event> events_;
  std::string piece_;
  Stats stats_;

  // The batch. Read by ShouldAbort on ggml's threads while the loop thread waits in llama_decode.
  std::vector<BatchEntry> entries_;
  std::vector<llama_token> batch_tokens_;
  std::vector<llama_pos> batch_positions_;
  std::vector<int32_t> batch_sequence_counts_;
  std::vector<llama_seq_id> batch_sequences_;
  std::vector<llama_seq_id*> batch_sequence_pointers_;
  std::vector<int8_t> batch_outputs_;

  mutable std::mutex stats_mutex_;
  Stats published_;
};

}  // namespace tokenloop
