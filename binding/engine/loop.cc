#include "engine/loop.h"

#include <algorithm>
#include <exception>
#include <span>
#include <thread>

#include "engine/result_json.h"
#include "text/utf8.h"

namespace tokenloop {
namespace {

// Cells kept free per running answer when a new request is admitted: without them a full cache would preempt the
// newcomer a few tokens later.
constexpr uint32_t kAdmissionReserve = 32;

// Shorter common prefixes are computed anew: sharing them would save less than it costs to keep account of.
constexpr uint32_t kShortestReuse = 32;
// How many waiting requests are looked at in one turn for one that need not wait for another's prefix.
constexpr size_t kLookAhead = 32;

constexpr uint32_t kMostHelpers = 7;

// Threads that would only take time from the decode's are of no help.
uint32_t SamplingHelpers(const EngineConfig& config, const ModelInfo& info) {
  if (config.sampling_threads) return *config.sampling_threads;
  const uint32_t cores = std::thread::hardware_concurrency();
  return std::min({cores > info.threads ? cores - info.threads : 0, kMostHelpers, info.parallel - 1});
}

}  // namespace

TokenLoop::TokenLoop(Decoder& decoder, DraftSource* drafts, const EngineConfig& config, EventSink& sink,
                     std::function<void(uint32_t)> on_finished)
    : decoder_(decoder),
      draft_source_(decoder.info().divisible ? drafts : nullptr),
      sink_(sink),
      on_finished_(std::move(on_finished)),
      config_(config),
      parallel_(decoder.info().parallel),
      batch_size_(decoder.info().batch_size),
      micro_batch_size_(decoder.info().micro_batch_size),
      cells_(decoder, decoder.info().context_size, decoder.info().sequences,
             decoder.info().sequences > decoder.info().parallel),
      budget_(config.step_target_ms),
      sampling_(decoder, SamplingHelpers(config, decoder.info())),
      batch_(batch_size_) {
  stats_.cells = cells_.total();
  published_.cells = cells_.total();
  decoder_.SetAbortCallback(ShouldAbort, this);
}

void TokenLoop::Submit(std::shared_ptr<Request> request) {
  const std::lock_guard lock(mutex_);
  inbox_.push_back({std::move(request), std::nullopt});
  wake_.notify_one();
}

void TokenLoop::Ready(std::shared_ptr<Request> request, PreparedPrompt prompt) {
  const std::lock_guard lock(mutex_);
  inbox_.push_back({std::move(request), std::move(prompt)});
  wake_.notify_one();
}

void TokenLoop::Post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      commands_.push_back(std::move(command));
      wake_.notify_one();
      return;
    }
  }
  command.run(nullptr);
  command.done();
}

void TokenLoop::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  wake_.notify_one();
}

void TokenLoop::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  wake_.notify_one();
}

void TokenLoop::Run() {
  while (TakeInbox()) {
    const auto started = Clock::now();
    try {
      RemoveEnded();
      Admit();
      if (CanStep()) Step();
    } catch (const std::exception& error) {
      // Out of memory, most likely. Whoever was in the step is lost; the engine is not.
      sampling_.FinishMasks();
      for (const auto& request : running_) Fail(*request, {"internal_error", 500, "", error.what()});
    }
    Forget();
    stats_.loop_ms += Milliseconds(Clock::now() - started);
    UpdateStats();
    PublishEvents();
  }
  for (const auto* list : {&preparing_, &running_, &waiting_, &paused_}) {
    for (const auto& request : *list) Finish(*request, FinishReason::kCancelled);
  }
  Forget();
  UpdateStats();
  PublishEvents();
  End();
}

void TokenLoop::End() {
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    commands.swap(commands_);
  }
  for (const Command& command : commands) {
    command.run(nullptr);
    command.done();
  }
}

bool TokenLoop::TakeInbox() {
  std::vector<Arrival> arrivals;
  std::vector<Command> commands;
  {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return stopping_ || woken_ || !inbox_.empty() || !commands_.empty(); };
    if (!HasWork()) {
      if (next_timer_) {
        wake_.wait_until(lock, *next_timer_, ready);
      } else {
        wake_.wait(lock, ready);
      }
    }
    woken_ = false;
    arrivals.swap(inbox_);
    commands.swap(commands_);
  }
  for (const Command& command : commands) {
    command.run(&cells_);
    UpdateStats();
    command.done();
  }
  for (Arrival& arrival : arrivals) Absorb(std::move(arrival));
  return !stopping_;
}

bool TokenLoop::HasWork() const { return CanStep() || (!waiting_.empty() && !blocked_); }

bool TokenLoop::CanStep() const {
  return std::any_of(running_.begin(), running_.end(), [](const auto& request) { return !request->paused; });
}

void TokenLoop::Absorb(Arrival arrival) {
  Request& request = *arrival.request;
  if (!arrival.prompt) {
    preparing_.push_back(std::move(arrival.request));
    return;
  }
  if (request.state == RequestState::kFinished) return;  // cancelled while its prompt was prepared
  std::erase(preparing_, arrival.request);
  PreparedPrompt& prompt = *arrival.prompt;
  if (prompt.failure) {
    Fail(request, *prompt.failure);
    return;
  }
  const auto size = static_cast<uint32_t>(prompt.tokens.size());
  if (size > cells_.total()) {
    Fail(request, {"context_length_exceeded", 400, "messages",
                   "This engine's context size is " + std::to_string(cells_.total()) + " tokens, but the prompt has " +
                       std::to_string(size) + " tokens."});
    return;
  }
  request.tokens = std::move(prompt.tokens);
  request.prompt_size = size;
  request.sampler = std::move(prompt.sampler);
  if (prompt.grammar) request.constraint.emplace(std::move(prompt.grammar));
  request.stops = std::move(prompt.stops);
  request.text.emplace(request.stops);
  request.arrival = next_arrival_++;
  Publish(request, EventKind::kPrompt, static_cast<int32_t>(size), {});
  Wait(std::move(arrival.request));
}

void TokenLoop::Wait(std::shared_ptr<Request> request) {
  request->state = RequestState::kWaiting;
  const auto place =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& other) { return request->before(*other); });
  waiting_.insert(place, std::move(request));
}

// Cancelled ones, those whose time is up, and those that nobody reads. Sets the next timer.
void TokenLoop::RemoveEnded() {
  next_timer_.reset();
  const auto now = Clock::now();
  const auto at = [&](Clock::time_point time) { next_timer_ = next_timer_ ? std::min(*next_timer_, time) : time; };
  for (const auto* list : {&preparing_, &waiting_, &running_, &paused_}) {
    for (const auto& each : *list) {
      Request& request = *each;
      if (request.cancelled()) {
        Finish(request, FinishReason::kCancelled);
        continue;
      }
      if (request.spec->timeout_ms > 0) {
        const auto deadline = request.submitted + std::chrono::milliseconds(request.spec->timeout_ms);
        if (now >= deadline) {
          ++stats_.timed_out;
          Fail(request, {"request_timeout", 408, "timeout_ms",
                         "The request was not done after " + std::to_string(request.spec->timeout_ms) + " ms."});
          continue;
        }
        at(deadline);
      }
      LookAfterReader(request);
      if (!request.paused || config_.stall_timeout_ms == 0) continue;
      const auto patience = request.paused_since + std::chrono::milliseconds(config_.stall_timeout_ms);
      if (now < patience) {
        at(patience);
        continue;
      }
      ++stats_.stalled;
      Fail(request, {"stream_stalled", 408, "",
                     "Nobody read the stream for " + std::to_string(config_.stall_timeout_ms) + " ms."});
    }
  }
  Forget();
}

// Pauses an answer whose reader is behind by the stream buffer, and lets it go on when half of that is read.
void TokenLoop::LookAfterReader(Request& request) {
  const bool behind = ReaderIsBehind(request);
  if (behind == request.paused) {
    const uint64_t taken = request.control->taken;
    if (behind && taken != request.taken_seen) {
      request.taken_seen = taken;
      request.paused_since = Clock::now();
    }
    return;
  }
  request.paused = behind;
  if (!behind) return;
  ++stats_.pauses;
  request.taken_seen = request.control->taken;
  request.paused_since = Clock::now();
  // From now on the reader wakes the loop. What it took just before must be seen here.
  request.control->awaited = true;
  if (!ReaderIsBehind(request)) request.paused = false;
}

bool TokenLoop::ReaderIsBehind(const Request& request) const {
  const uint64_t unread = request.control->published - request.control->taken;
  return unread > (request.paused ? config_.stream_buffer / 2 : config_.stream_buffer);
}

// In the order of service: a large request is not overtaken, so it cannot starve. Only one that waits for a prefix that
// another request is about to compute lets others pass; it will have less to do than they.
void TokenLoop::Admit() {
  blocked_ = false;
  if (crowded_ && CanStep()) return;
  size_t passed = 0;
  while (passed < std::min(waiting_.size(), kLookAhead)) {
    Request& request = *waiting_[passed];
    if (request.paused) {
      ++passed;
      continue;
    }
    if (running_.size() >= parallel_ && !MakeWayFor(request)) break;
    const auto size = static_cast<uint32_t>(request.tokens.size());
    PrefixTree::Match match;
    if (cells_.keeps() && request.spec->cache_prompt) {
      // At least one token must be decoded: its logits are wanted.
      match = cells_.Find(request.spec->cache_key, std::span(request.tokens).first(size - 1));
      if (match.length < kShortestReuse) match = {};
      if (AwaitsPrefix(request, match.length)) {
        ++passed;
        continue;
      }
    }
    if (!running_.empty()) {
      uint64_t committed = cells_.active() + (size - match.length) + cells_.IdleCells(match);
      for (const auto& other : running_) committed += other->pending() + kAdmissionReserve;
      if (committed > cells_.total()) {
        if (MakeWayFor(request)) continue;
        break;
      }
    }
    const auto opened = cells_.Open(request.spec->cache_key, match);
    if (!opened) break;
    Start(request, *opened);
    running_.push_back(std::move(waiting_[passed]));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(passed));
  }
  blocked_ = true;  // whoever still waits does so for a change: of the running ones, or of a reader
}

// Whether a running request is about to compute a longer prefix of this prompt than the cache has now.
bool TokenLoop::AwaitsPrefix(const Request& request, uint32_t available) const {
  return std::any_of(running_.begin(), running_.end(), [&](const auto& other) {
    if (other->state != RequestState::kPrefilling || other->paused || !other->spec->cache_prompt) return false;
    if (other->spec->cache_key != request.spec->cache_key) return false;
    const auto end =
        std::mismatch(request.tokens.begin(), request.tokens.end() - 1, other->tokens.begin(), other->tokens.end());
    const auto common = static_cast<uint32_t>(end.first - request.tokens.begin());
    return common >= available + kShortestReuse && other->cached < common;
  });
}

// Parks a running request for one that is to be served before it: a paused one, or else the last of lower priority.
bool TokenLoop::MakeWayFor(const Request& next) {
  const auto last = std::max_element(running_.begin(), running_.end(), [](const auto& a, const auto& b) {
    return a->paused != b->paused ? b->paused : a->before(*b);
  });
  if (last == running_.end()) return false;
  if (!(*last)->paused && (*last)->spec->priority <= next.spec->priority) return false;
  Park(**last);
  return true;
}

void TokenLoop::Start(Request& request, const Cells::Opened& opened) {
  request.sequence = opened.sequence;
  request.cached = opened.cached;
  request.state = RequestState::kPrefilling;
  if (request.started) return;
  request.started = true;
  request.reused = opened.cached;
  stats_.cached_tokens += opened.cached;
  request.first_decode = Clock::now();
}

// It goes on later, from its own cells if nobody needed them meanwhile.
void TokenLoop::Park(Request& request) {
  ++stats_.parkings;
  LeaveSequence(request, true);
}

// Its cells are needed now; it is computed again later.
void TokenLoop::Preempt(Request& request) {
  ++stats_.preemptions;
  LeaveSequence(request, false);
}

void TokenLoop::LeaveSequence(Request& request, bool keep) {
  if (keep && cells_.keeps() && request.spec->cache_prompt && request.cached >= kShortestReuse) {
    cells_.Keep(request.sequence);
  } else {
    cells_.Free(request.sequence);
  }
  request.sequence = -1;
  request.cached = 0;
  request.drafts.clear();
  const auto it = std::find_if(running_.begin(), running_.end(), [&](const auto& r) { return r.get() == &request; });
  std::shared_ptr<Request> owner = std::move(*it);
  running_.erase(it);
  if (request.paused) {
    request.state = RequestState::kWaiting;
    paused_.push_back(std::move(owner));
  } else {
    Wait(std::move(owner));
  }
  blocked_ = false;
}

void TokenLoop::Finish(Request& request, FinishReason reason) {
  if (request.state == RequestState::kFinished) return;
  if (request.text) {
    std::string rest;
    // Text that was held back may complete a stop string at the very end; then it is that which ended the answer.
    if (request.text->Finish(rest) && reason == FinishReason::kLength) reason = FinishReason::kStop;
    PublishText(request, 0, std::move(rest));
  }
  if (reason == FinishReason::kCancelled) {
    ++(request.state == RequestState::kPrefilling ? stats_.cancelled_prefilling
       : request.state == RequestState::kDecoding ? stats_.cancelled_decoding
                                                  : stats_.cancelled_queued);
  } else {
    ++stats_.finished;
    if (cells_.keeps() && request.spec->cache_prompt && request.holds_sequence() && request.cached >= kShortestReuse) {
      cells_.Keep(request.sequence);
      request.sequence = -1;
    }
  }
  Release(request);
  Publish(request, EventKind::kFinished, static_cast<int32_t>(reason), ResultJson(request));
}

void TokenLoop::Fail(Request& request, const Failure& failure) {
  if (request.state == RequestState::kFinished) return;
  ++stats_.failed;
  Release(request);
  Publish(request, EventKind::kFailed, 0, FailureJson(failure));
}

void TokenLoop::Release(Request& request) {
  if (request.holds_sequence()) {
    cells_.Free(request.sequence);
    request.sequence = -1;
  }
  request.cached = 0;
  request.state = RequestState::kFinished;
  if (draft_source_ != nullptr) draft_source_->Forget(request);
  blocked_ = false;
  on_finished_(request.id);
}

void TokenLoop::Forget() {
  const auto finished = [](const auto& request) { return request->state == RequestState::kFinished; };
  for (auto* list : {&preparing_, &waiting_, &running_, &paused_}) std::erase_if(*list, finished);
  for (auto it = paused_.begin(); it != paused_.end();) {
    if ((*it)->paused) {
      ++it;
      continue;
    }
    Wait(std::move(*it));
    it = paused_.erase(it);
  }
}

// The logprobs that the text completes, and the text. Nothing where there is neither text nor a token to count.
void TokenLoop::PublishText(Request& request, int32_t tokens, std::string text) {
  const auto count = [&](const std::string& published) {
    request.control->published += kRecordOverhead + Utf16Length(published);
  };
  bool logprobs = false;
  while (request.text->has_logprobs()) {
    std::string json = request.text->TakeLogprobs();
    count(json);
    Publish(request, EventKind::kLogprobs, 0, std::move(json));
    logprobs = true;
  }
  if (text.empty() && tokens == 0 && !logprobs) return;
  count(text);
  Publish(request, EventKind::kDelta, tokens, std::move(text));
}

void TokenLoop::Publish(const Request& request, EventKind kind, int32_t value, std::string text) {
  events_.push_back({request.id, request.choice, kind, value, std::move(text)});
}

void TokenLoop::PublishEvents() {
  if (events_.empty()) return;
  sink_.Publish(events_);
  events_.clear();
}

void TokenLoop::UpdateStats() {
  const auto count = [&](auto predicate) {
    return static_cast<uint32_t>(std::count_if(running_.begin(), running_.end(), predicate));
  };
  stats_.decoding = count([](const auto& request) { return request->state == RequestState::kDecoding; });
  stats_.paused = count([](const auto& request) { return request->paused; }) + static_cast<uint32_t>(paused_.size());
  stats_.queued = static_cast<uint32_t>(preparing_.size() + waiting_.size() + paused_.size());
  stats_.prefilling = static_cast<uint32_t>(running_.size()) - stats_.decoding;
  stats_.sequences = static_cast<uint32_t>(running_.size());
  stats_.cells_used = cells_.active();
  stats_.cells_cached = cells_.kept();
  stats_.evictions = cells_.evictions();
  const std::lock_guard lock(stats_mutex_);
  published_ = stats_;
}

Stats TokenLoop::Snapshot() const {
  const std::lock_guard lock(stats_mutex_);
  return published_;
}

}  // namespace tokenloop
