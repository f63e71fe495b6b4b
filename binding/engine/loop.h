// The token loop. Run() is the body of the loop thread, which alone touches the decoder and every running request.
// Other threads reach it through Submit, Ready, Wake and Stop, which only take the inbox lock.
//
// loop.cc: turns, the inbox, who may run. step.cc: one decode, and what becomes of its logits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/cells.h"
#include "engine/decoder.h"
#include "engine/draft_source.h"
#include "engine/request.h"
#include "engine/sampling_stage.h"
#include "engine/scheduler.h"
#include "engine/types.h"

namespace tokenloop {

class TokenLoop {
 public:
  // `on_finished` is called on the loop thread after a request's last event was put into the batch to be published.
  // `drafts` may be null. `decoder` and `drafts` outlive the loop.
  TokenLoop(Decoder& decoder, DraftSource* drafts, const EngineConfig& config, EventSink& sink,
            std::function<void(uint32_t)> on_finished);

  // Announces a request whose prompt is being prepared. Any thread.
  void Submit(std::shared_ptr<Request> request);
  // Its prompt is prepared, or has failed. Prompt thread.
  void Ready(std::shared_ptr<Request> request, PreparedPrompt prompt);
  // Work for the loop thread between two steps. `run` gets nullptr when the loop has ended; `done` comes after the
  // statistics know of it.
  struct Command {
    std::function<void(Cells*)> run;
    std::function<void()> done;
  };
  // Any thread. At once when the loop has ended.
  void Post(Command command);
  // Something in a request's control has changed that the loop waits for. Any thread.
  void Wake();
  // Ends the running decode, gives every request its last event and makes Run return. Any thread.
  void Stop();
  void Run();
  // Any thread; at most one step old.
  Stats Snapshot() const;

 private:
  using Requests = std::vector<std::shared_ptr<Request>>;

  struct Arrival {
    std::shared_ptr<Request> request;
    std::optional<PreparedPrompt> prompt;  // absent: announced only
  };
  struct BatchEntry {
    Request* request;
    uint32_t tokens;       // known ones; its drafts come on top
    int32_t first_output;  // index of the last known token, if its logits are wanted; else -1
  };

  // loop.cc
  bool TakeInbox();  // waits for work; false when stopping
  void End();
  bool HasWork() const;
  bool CanStep() const;
  void Absorb(Arrival arrival);
  void RemoveEnded();
  void LookAfterReader(Request& request);
  bool ReaderIsBehind(const Request& request) const;
  void Wait(std::shared_ptr<Request> request);
  void Admit();
  bool AwaitsPrefix(const Request& request, uint32_t available) const;
  bool MakeWayFor(const Request& next);
  void Start(Request& request, const Cells::Opened& opened);
  void Park(Request& request);
  void Preempt(Request& request);
  void LeaveSequence(Request& request, bool keep);
  void Finish(Request& request, FinishReason reason);
  void Fail(Request& request, const Failure& failure);
  void Release(Request& request);
  void Forget();  // drops requests from the lists where they do not belong any more
  void PublishText(Request& request, int32_t tokens, std::string text);
  void Publish(const Request& request, EventKind kind, int32_t value, std::string text);
  void PublishEvents();
  void UpdateStats();

  // step.cc
  void Step();
  StepPlan Plan();
  void FillBatch(const StepPlan& plan);
  void MakeDrafts();
  void StartMasks();
  void TakeDecoded(double decode_ms);
  void NoRoom();
  void LeaveOutDrafts(std::span<const SequenceView> views, StepPlan& plan) const;
  void Resynchronise();
  void Advance(Request& request, uint32_t cached);
  void SampleOutputs();
  void Append(Request& request, SampleJob& job);
  std::optional<FinishReason> AppendToken(Request& request, const SampleJob::Sampled& sampled);
  static bool ShouldAbort(void* self);

  Decoder& decoder_;
  DraftSource* const draft_source_;
  EventSink& sink_;
  const std::function<void(uint32_t)> on_finished_;
  const EngineConfig config_;
  const uint32_t parallel_;
  const uint32_t batch_size_;
  const uint32_t micro_batch_size_;

  // Inbox, under mutex_.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Arrival> inbox_;
  std::vector<Command> commands_;
  bool ended_ = false;
  bool woken_ = false;
  std::atomic<bool> stopping_{false};

  // Loop thread only. A request is in exactly one of the lists.
  Requests preparing_;
  Requests waiting_;  // in the order of service
  Requests running_;  // those that hold a sequence
  Requests paused_;   // those that gave their sequence back while their reader is behind
  Cells cells_;
  uint64_t next_arrival_ = 1;
  std::optional<Clock::time_point> next_timer_;  // when some request must be looked at again
  bool crowded_ = false;                         // llama.cpp found no room for a batch that should have fitted
  bool blocked_ = false;                         // what waits cannot start before something else has changed
  PromptBudget budget_;
  SamplingStage sampling_;
  std::vector<SampleJob> jobs_;
  std::vector<Event> events_;
  std::string piece_;
  Stats stats_;

  // Read by ShouldAbort on ggml's threads while the loop thread waits in Decode.
  std::vector<BatchEntry> entries_;
  Batch batch_;

  mutable std::mutex stats_mutex_;
  Stats published_;
};

}  // namespace tokenloop
