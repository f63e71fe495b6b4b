// An engine: one model, one loop thread, one prompt thread. The public face of engine/ towards the bridge.
//
// Threads: Start, Submit and StopAndJoin are called on the owner's (JavaScript) thread, StopAndJoin also from a closing
// thread or at exit; Cancel and stats from anywhere. Events leave on the loop thread through the sink.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/loop.h"
#include "engine/model.h"
#include "engine/prefix_file.h"
#include "engine/process.h"
#include "engine/thread.h"
#include "engine/types.h"

namespace tokenloop {

class Engine : public Stoppable {
 public:
  // Work for the prompt thread. Gets nullptr when the engine closed before it was its turn.
  using Job = std::function<void(const Model*)>;

  Engine(std::unique_ptr<Model> model, const EngineConfig& config, std::shared_ptr<EventSink> sink);
  ~Engine() override;

  // Starts the threads. False when the system has none to give.
  bool Start();

  // Queues a request, each of its n answers as one that waits, and returns its admission id, 1..2^31-1. Fails with
  // "queue_full" (429), "engine_closed" (503).
  Result<uint32_t> Submit(RequestSpec spec);
  // By admission id, in any state; unknown ids are ignored.
  void Cancel(uint32_t id);
  // The reader of a request took records of this weight (request.h). By admission id; unknown ids are ignored.
  void Take(uint32_t id, uint64_t weight);
  // False when the engine is closed; then `job` was not taken.
  bool Post(Job job);
  // What is cached under a prompt cache key, out to a file and back (engine/prefix_store.h). They block: not for the
  // JavaScript thread.
  Result<PrefixFile> SavePrefix(const std::string& key);
  Result<uint64_t> RestorePrefix(const std::string& key, const PrefixFile& file);
  Stats stats() const { return loop_.Snapshot(); }
  const ModelInfo& info() const { return info_; }

  // Gives every request its last event, joins both threads and frees the model: a GPU's resources must be gone before
  // the process is. What is left answers with "engine_closed". Idempotent; concurrent calls wait for the first.
  void StopAndJoin() override;

 private:
  void AnswerFinished(uint32_t id);
  uint32_t RetryAfter() const;
  template <typename T, typename Body>
  Result<T> OnLoop(Body body);
  std::shared_ptr<RequestControl> Find(uint32_t id);
  void RunPromptThread();
  void PrepareAll(const std::vector<std::shared_ptr<Request>>& answers);
  PreparedPrompt Prepare(const RequestSpec& spec);
  Result<std::unique_ptr<Sampler>> MakeSampler(const RequestSpec& spec, uint32_t choice,
                                               const std::vector<llama_token>& prompt) const;

  std::unique_ptr<Model> model_;  // null once closed
  const std::shared_ptr<EventSink> sink_;
  const ModelInfo info_;
  const uint32_t most_live_;              // waiting and running
  std::optional<GrammarCache> grammars_;  // prompt thread; empty once closed
  TokenLoop loop_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  struct Live {
    std::shared_ptr<RequestControl> control;
    uint32_t answers;  // that have not had their last event
  };
  std::unordered_map<uint32_t, Live> live_;  // by admission id
  size_t live_answers_ = 0;
  uint32_t last_id_ = 0;
  Clock::time_point last_finish_{};
  double finish_interval_ms_ = 0;  // recent mean, while the queue was busy; 0: none yet
  bool closed_ = false;

  std::mutex join_mutex_;
  Thread loop_thread_;
  Thread prompt_thread_;
};

}  // namespace tokenloop
