#include "engine/loop.h"

#include <algorithm>
#include <exception>
#include <span>

#include "engine/result_json.h"

namespace tokenloop {
namespace {

double Milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

// Cells kept free per running answer when a new request is admitted: without them a full cache would preempt the
// newcomer a few tokens later.
constexpr uint32_t kAdmissionReserve = 32;

// Shorter common prefixes are computed anew: sharing them would save less than it costs to keep account of.
constexpr uint32_t kShortestReuse = 32;
// How many waiting requests are looked at in one turn for one that need not wait for another's prefix.
constexpr size_t kLookAhead = 32;
// A prompt that is alone may take so many times the budget: nobody waits for its step but newcomers and its own cancel.
constexpr uint32_t kAloneFactor = 4;

}  // namespace

TokenLoop::TokenLoop(Model& model, const EngineConfig& config, EventSink& sink,
                     std::function<void(uint32_t)> on_finished)
    : model_(model),
      context_(model.context()),
      memory_(llama_get_memory(model.context())),
      sink_(sink),
      on_finished_(std::move(on_finished)),
      cells_(model.info().context_size),
      parallel_(model.info().parallel),
      batch_size_(model.info().batch_size),
      micro_batch_size_(model.info().micro_batch_size),
      keeps_(model.info().sequences > model.info().parallel),
      budget_(config.step_target_ms),
      batch_tokens_(batch_size_),
      batch_positions_(batch_size_),
      batch_sequence_counts_(batch_size_, 1),
      batch_sequences_(batch_size_),
      batch_sequence_pointers_(batch_size_),
      batch_outputs_(batch_size_) {
  for (uint32_t i = 0; i < batch_size_; ++i) batch_sequence_pointers_[i] = &batch_sequences_[i];
  for (uint32_t i = model.info().sequences; i > 0; --i) free_sequences_.push_back(static_cast<llama_seq_id>(i - 1));
  stats_.cells = cells_;
  published_.cells = cells_;
  llama_set_abort_callback(context_, ShouldAbort, this);
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
      RemoveCancelled();
      Admit();
      if (!running_.empty()) Step();
    } catch (const std::exception& error) {
      // Out of memory, most likely. Whoever was in the step is lost; the engine is not.
      for (const auto& request : running_) Fail(*request, {"internal_error", 500, "", error.what()});
    }
    Forget();
    stats_.loop_ms += Milliseconds(Clock::now() - started);
    UpdateStats();
    PublishEvents();
  }
  for (auto* list : {&preparing_, &running_}) {
    for (const auto& request : *list) Finish(*request, FinishReason::kCancelled);
  }
  for (const auto& request : waiting_) Finish(*request, FinishReason::kCancelled);
  Forget();
  UpdateStats();
  PublishEvents();
}

bool TokenLoop::TakeInbox() {
  std::vector<Arrival> arrivals;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || woken_ || !inbox_.empty() || !running_.empty() || !waiting_.empty(); });
    woken_ = false;
    arrivals.swap(inbox_);
  }
  for (Arrival& arrival : arrivals) Absorb(std::move(arrival));
  return !stopping_;
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
  if (size > cells_) {
    Fail(request, {"context_length_exceeded", 400, "messages",
                   "This engine's context size is " + std::to_string(cells_) + " tokens, but the prompt has " +
                       std::to_string(size) + " tokens."});
    return;
  }
  request.tokens = std::move(prompt.tokens);
  request.prompt_size = size;
  request.sampler = std::move(prompt.sampler);
  if (prompt.grammar) request.constraint.emplace(std::move(prompt.grammar));
  request.stops = std::move(prompt.stops);
  request.output.emplace(request.stops);
  request.state = RequestState::kWaiting;
  events_.push_back({request.id, request.choice, EventKind::kPrompt, static_cast<int32_t>(size), {}});
  waiting_.push_back(std::move(arrival.request));
}

void TokenLoop::RemoveCancelled() {
  const auto remove = [&](const std::shared_ptr<Request>& request) {
    if (request->cancelled()) Finish(*request, FinishReason::kCancelled);
  };
  std::for_each(preparing_.begin(), preparing_.end(), remove);
  std::for_each(waiting_.begin(), waiting_.end(), remove);
  std::for_each(running_.begin(), running_.end(), remove);
  Forget();
}

// First come, first served: a large request is not overtaken, so it cannot starve. Only one that waits for a prefix
// that another request is about to compute lets others pass; it will have less to do than they.
void TokenLoop::Admit() {
  if (crowded_ && !running_.empty()) return;
  size_t passed = 0;
  while (passed < std::min(waiting_.size(), kLookAhead) && running_.size() < parallel_) {
    Request& request = *waiting_[passed];
    const auto size = static_cast<uint32_t>(request.tokens.size());
    PrefixTree::Match match;
    if (keeps_ && request.spec->cache_prompt) {
      // At least one token must be decoded: its logits are wanted.
      match = tree_.Find(request.spec->cache_key, std::span(request.tokens).first(size - 1));
      if (match.length < kShortestReuse) match = {};
      if (AwaitsPrefix(request, match.length)) {
        ++passed;
        continue;
      }
    }
    if (!running_.empty()) {
      uint64_t committed = tree_.active_cells() + (size - match.length);
      if (match.length > 0) committed += tree_.IdleCells(match.source, match.length);
      for (const auto& other : running_) committed += other->pending() + kAdmissionReserve;
      if (committed > cells_) return;
    }
    if (free_sequences_.empty() && !EvictOldest(match.source)) {
      // The only sequence left to evict is the one to copy from.
      if (!EvictOldest()) return;
      match = {};
    }
    Start(request, match);
    running_.push_back(std::move(waiting_[passed]));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(passed));
  }
}

// Whether a running request is about to compute a longer prefix of this prompt than the cache has now.
bool TokenLoop::AwaitsPrefix(const Request& request, uint32_t available) const {
  return std::any_of(running_.begin(), running_.end(), [&](const auto& other) {
    if (other->state != RequestState::kPrefilling || !other->spec->cache_prompt) return false;
    if (other->spec->cache_key != request.spec->cache_key) return false;
    const auto end =
        std::mismatch(request.tokens.begin(), request.tokens.end() - 1, other->tokens.begin(), other->tokens.end());
    const auto common = static_cast<uint32_t>(end.first - request.tokens.begin());
    return common >= available + kShortestReuse && other->cached < common;
  });
}

void TokenLoop::Start(Request& request, const PrefixTree::Match& match) {
  request.sequence = free_sequences_.back();
  free_sequences_.pop_back();
  if (match.length == 0) {
    tree_.Add(request.sequence, request.spec->cache_key);
  } else {
    llama_memory_seq_cp(memory_, match.source, request.sequence, 0, static_cast<llama_pos>(match.length));
    tree_.AddShared(request.sequence, match.source, match.length);
    const auto kept = std::find(kept_.begin(), kept_.end(), match.source);
    if (kept != kept_.end()) {
      kept_.erase(kept);
      // One that holds nothing beyond the shared part is of no more use; any other was used just now.
      if (tree_.Length(match.source) == match.length) {
        FreeSequence(match.source);
      } else {
        kept_.push_back(match.source);
      }
    }
  }
  request.cached = match.length;
  request.state = RequestState::kPrefilling;
  if (request.admitted == 0) {
    request.admitted = next_admission_++;
    request.reused = match.length;
    stats_.cached_tokens += match.length;
    request.first_decode = Clock::now();
  }
}

// The request's cells reach up to `cached` tokens now.
void TokenLoop::Advance(Request& request, uint32_t cached) {
  if (cached <= request.cached) return;
  tree_.Append(request.sequence, std::span(request.tokens).subspan(request.cached, cached - request.cached));
  request.cached = cached;
}

void TokenLoop::FreeSequence(llama_seq_id sequence) {
  llama_memory_seq_rm(memory_, sequence, -1, -1);
  tree_.Remove(sequence);
  free_sequences_.push_back(sequence);
}

bool TokenLoop::EvictOldest(llama_seq_id except) {
  const auto oldest = std::find_if(kept_.begin(), kept_.end(), [&](llama_seq_id kept) { return kept != except; });
  if (oldest == kept_.end()) return false;
  FreeSequence(*oldest);
  kept_.erase(oldest);
  ++stats_.evictions;
  return true;
}

void TokenLoop::EvictFor(uint32_t cells) {
  while (cells_ - tree_.cells() < cells && EvictOldest()) {
  }
}

void TokenLoop::Step() {
  std::vector<SequenceView> views;
  views.reserve(running_.size());
  uint32_t decoding = 0;
  for (const auto& request : running_) {
    const bool decodes = request->state == RequestState::kDecoding;
    decoding += decodes ? 1 : 0;
    views.push_back({request->pending(), tree_.OwnCells(request->sequence), decodes, request->admitted});
  }
  // Kept cells count as free: they are taken back below, as many as the plan needs.
  const uint32_t budget = budget_.Tokens(decoding);
  const StepPlan plan = PlanStep(
      views, {batch_size_, budget, std::max(micro_batch_size_, kAloneFactor * budget), cells_ - tree_.active_cells()});

  for (const size_t index : plan.preempted) Preempt(*running_[index]);
  if (plan.shares.empty()) {
    // Alone, and the cache is full. What was preempted for it may have freed more than the plan could know: then once
    // more.
    if (plan.preempted.empty()) Finish(*running_.front(), FinishReason::kLength);
    return;
  }
  uint32_t planned = 0;
  for (const StepPlan::Share& share : plan.shares) planned += share.tokens;
  EvictFor(planned);

  entries_ = FillBatch(plan);
  const auto started = Clock::now();
  const int32_t status = Decode();
  const auto decoded = Clock::now();
  ++stats_.steps;
  stats_.decode_ms += Milliseconds(decoded - started);

  if (status == 0) {
    crowded_ = false;
    uint32_t tokens = 0;
    uint32_t answering = 0;
    for (const BatchEntry& entry : entries_) {
      tokens += entry.tokens;
      Advance(*entry.request, entry.request->cached + entry.tokens);
      if (entry.request->state == RequestState::kPrefilling) stats_.prompt_tokens += entry.tokens;
      answering += entry.request->state == RequestState::kDecoding ? 1 : 0;
    }
    if (tokens > answering) budget_.Observe(tokens, Milliseconds(decoded - started));
    if (entries_.size() > 1) ++stats_.shared_steps;
    stats_.peak_sequences = std::max(stats_.peak_sequences, static_cast<uint32_t>(entries_.size()));
    SampleOutputs(entries_);
    stats_.sample_ms += Milliseconds(Clock::now() - decoded);
    return;
  }

  Resynchronise(entries_);
  if (status == 2) return;  // aborted: those cancelled leave before the next step
  if (status == 1) {
    // No room although the count said so (a cache with a layout of its own): make room and try again. Nobody is let in
    // until a step has succeeded.
    crowded_ = true;
    if (EvictOldest()) return;
    const auto youngest = std::max_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.request->admitted < b.request->admitted;
    });
    if (entries_.size() > 1) {
      Preempt(*youngest->request);
    } else {
      Finish(*youngest->request, FinishReason::kLength);
    }
    return;
  }
  for (const BatchEntry& entry : entries_) {
    Fail(*entry.request, {"decode_failed", 500, "", "llama_decode failed with status " + std::to_string(status) + "."});
  }
}

std::vector<TokenLoop::BatchEntry> TokenLoop::FillBatch(const StepPlan& plan) {
  std::vector<BatchEntry> entries;
  entries.reserve(plan.shares.size());
  size_t at = 0;
  for (const StepPlan::Share& share : plan.shares) {
    Request& request = *running_[share.index];
    const bool last = share.tokens == request.pending();
    for (uint32_t i = 0; i < share.tokens; ++i, ++at) {
      batch_tokens_[at] = request.tokens[request.cached + i];
      batch_positions_[at] = static_cast<llama_pos>(request.cached + i);
      batch_sequences_[at] = request.sequence;
      batch_outputs_[at] = last && i + 1 == share.tokens ? 1 : 0;
    }
    entries.push_back({&request, share.tokens, last ? static_cast<int32_t>(at) - 1 : -1});
  }
  return entries;
}

int32_t TokenLoop::Decode() {
  int32_t n_tokens = 0;
  for (const BatchEntry& entry : entries_) n_tokens += static_cast<int32_t>(entry.tokens);
  const llama_batch batch = {n_tokens,
                             batch_tokens_.data(),
                             nullptr,
                             batch_positions_.data(),
                             batch_sequence_counts_.data(),
                             batch_sequence_pointers_.data(),
                             batch_outputs_.data()};
  try {
    const int32_t status = llama_decode(context_, batch);
    if (status == 0) llama_synchronize(context_);
    return status;
  } catch (const std::exception&) {
    return -3;
  }
}

// After an aborted or failed decode: earlier parts of the batch may be in the cache, the rest is not.
void TokenLoop::Resynchronise(const std::vector<BatchEntry>& entries) {
  for (const BatchEntry& entry : entries) {
    const llama_pos last = llama_memory_seq_pos_max(memory_, entry.request->sequence);
    Advance(*entry.request, static_cast<uint32_t>(last + 1));
  }
}

void TokenLoop::SampleOutputs(const std::vector<BatchEntry>& entries) {
  for (const BatchEntry& entry : entries) {
    Request& request = *entry.request;
    if (entry.output < 0 || request.cancelled()) continue;
    if (request.state == RequestState::kPrefilling) {
      request.state = RequestState::kDecoding;
      if (request.first_token == Clock::time_point{}) request.first_token = Clock::now();
    }
    if (request.spec->max_tokens == 0) {
      Finish(request, FinishReason::kLength);
      continue;
    }
    const float* logits = llama_get_logits_ith(context_, entry.output);
    const float* allowed = logits;
    if (request.constraint && logits != nullptr) {
      if (const auto failure = request.constraint->Mask(logits, masked_)) {
        Fail(request, *failure);
        continue;
      }
      allowed = masked_.data();
    }
    const llama_token token = logits == nullptr ? LLAMA_TOKEN_NULL : request.sampler->Sample(allowed, candidates_);
    if (token == LLAMA_TOKEN_NULL) {
      Fail(request, {"invalid_logits", 500, "", "The model's logits are not numbers, or every token is banned."});
      continue;
    }
    Append(request, token, logits);
  }
}

void TokenLoop::Append(Request& request, llama_token token, const float* logits) {
  request.sampler->Accept(token);
  request.tokens.push_back(token);
  ++stats_.generated_tokens;

  Event event = {request.id, request.choice, EventKind::kDelta, 1, {}};
  std::optional<FinishReason> reason;
  if (llama_vocab_is_eog(model_.vocab(), token)) {
    reason = FinishReason::kStop;
  } else {
    piece_.clear();
    model_.AppendPiece(token, piece_);
    const uint64_t published = request.sampled_bytes - request.output->held();
    request.sampled_bytes += piece_.size();
    if (request.spec->logprobs >= 0) {
      const TokenLogprobs logprobs =
          ComputeLogprobs({logits, model_.info().vocab_size}, token, static_cast<uint32_t>(request.spec->logprobs));
      request.logprobs.push_back({LogprobsJson(logprobs, model_), request.sampled_bytes});
    }
    const bool followed = !request.constraint || request.constraint->Accept(token, piece_);
    if (!followed) {
      Fail(request, {"grammar_too_ambiguous", 400, "grammar", "The grammar is too ambiguous to be followed."});
      return;
    }
    const bool stopped = request.output->Push(piece_, event.text);
    // After a stop string only what came before it is out.
    request.published_bytes = stopped ? published + event.text.size() : request.sampled_bytes - request.output->held();
    if (stopped || (request.constraint && request.constraint->Complete())) {
      reason = FinishReason::kStop;
    } else if (request.spec->max_tokens >= 0 &&
               request.generated() >= static_cast<uint32_t>(request.spec->max_tokens)) {
      reason = FinishReason::kLength;
    } else if (request.tokens.size() > cells_) {
      reason = FinishReason::kLength;  // the token has no cell to be decoded into
    }
  }
  PublishText(request, std::move(event));
  if (reason) Finish(request, *reason);
}

// The text, and before it the logprobs of the tokens that it completes.
void TokenLoop::PublishText(Request& request, Event event) {
  while (!request.logprobs.empty() && request.logprobs.front().end <= request.published_bytes) {
    events_.push_back({request.id, request.choice, EventKind::kLogprobs, 0, std::move(request.logprobs.front().json)});
    request.logprobs.pop_front();
  }
  events_.push_back(std::move(event));
}

void TokenLoop::Preempt(Request& request) {
  FreeSequence(request.sequence);
  request.sequence = -1;
  request.cached = 0;
  request.state = RequestState::kWaiting;
  ++stats_.preemptions;
  const auto it = std::find_if(running_.begin(), running_.end(), [&](const auto& r) { return r.get() == &request; });
  // It was admitted before all that wait.
  const auto place = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& other) {
    return other->admitted == 0 || other->admitted > request.admitted;
  });
  waiting_.insert(place, *it);
}

void TokenLoop::Finish(Request& request, FinishReason reason) {
  if (request.state == RequestState::kFinished) return;
  if (request.output) {
    std::string rest;
    // Text that was held back may complete a stop string at the very end; then it is that which ended the answer.
    if (request.output->Finish(rest) && reason == FinishReason::kLength) reason = FinishReason::kStop;
    // Without a stop string all text is out, whatever was replaced in it.
    if (request.output->matched_stop() < 0) request.published_bytes = request.sampled_bytes;
    if (!rest.empty() || !request.logprobs.empty()) {
      PublishText(request, {request.id, request.choice, EventKind::kDelta, 0, std::move(rest)});
    }
  }
  const bool cancelled = reason == FinishReason::kCancelled;
  ++(cancelled ? stats_.cancelled : stats_.finished);
  if (!cancelled && keeps_ && request.spec->cache_prompt && request.holds_sequence() &&
      request.cached >= kShortestReuse) {
    tree_.Keep(request.sequence);
    kept_.push_back(request.sequence);
    request.sequence = -1;
  }
  Release(request);
  events_.push_back(
      {request.id, request.choice, EventKind::kFinished, static_cast<int32_t>(reason), ResultJson(request)});
}

void TokenLoop::Fail(Request& request, const Failure& failure) {
  if (request.state == RequestState::kFinished) return;
  ++stats_.failed;
  Release(request);
  events_.push_back({request.id, request.choice, EventKind::kFailed, 0, FailureJson(failure)});
}

void TokenLoop::Release(Request& request) {
  if (request.holds_sequence()) {
    FreeSequence(request.sequence);
    request.sequence = -1;
  }
  request.cached = 0;
  request.state = RequestState::kFinished;
  on_finished_(request.id);
}

void TokenLoop::Forget() {
  const auto finished = [](const auto& request) { return request->state == RequestState::kFinished; };
  std::erase_if(preparing_, finished);
  std::erase_if(waiting_, finished);
  // Preempted requests are in waiting_ now.
  std::erase_if(running_, [](const auto& request) { return !request->holds_sequence(); });
}

void TokenLoop::PublishEvents() {
  if (events_.empty()) return;
  sink_.Publish(events_);
  events_.clear();
}

void TokenLoop::UpdateStats() {
  stats_.queued = static_cast<uint32_t>(preparing_.size() + waiting_.size());
  stats_.decoding = static_cast<uint32_t>(std::count_if(
      running_.begin(), running_.end(), [](const auto& request) { return request->state == RequestState::kDecoding; }));
  stats_.prefilling = static_cast<uint32_t>(running_.size()) - stats_.decoding;
  stats_.sequences = static_cast<uint32_t>(running_.size());
  stats_.cells_used = tree_.active_cells();
  stats_.cells_cached = tree_.cells() - tree_.active_cells();
  const std::lock_guard lock(stats_mutex_);
  published_ = stats_;
}

Stats TokenLoop::Snapshot() const {
  const std::lock_guard lock(stats_mutex_);
  return published_;
}

bool TokenLoop::ShouldAbort(void* data) {
  const auto* self = static_cast<const TokenLoop*>(data);
  if (self->stopping_.load(std::memory_order_relaxed)) return true;
  if (self->entries_.empty()) return false;
  return std::all_of(self->entries_.begin(), self->entries_.end(),
                     [](const BatchEntry& entry) { return entry.request->cancelled(); });
}

}  // namespace tokenloop
