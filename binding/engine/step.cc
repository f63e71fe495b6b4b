#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "engine/loop.h"
#include "engine/result_json.h"

namespace tokenloop {
namespace {

// A prompt that is alone may take so many times the budget: nobody waits for its step but newcomers and its own cancel.
constexpr uint32_t kAloneFactor = 4;

size_t OccupancyBucket(size_t sequences) {
  return std::min<size_t>(std::bit_width(sequences - 1), kOccupancyBuckets - 1);
}

}  // namespace

void TokenLoop::Step() {
  const auto planning = Clock::now();
  MakeDrafts();
  const StepPlan plan = Plan();
  FillBatch(plan);
  if (entries_.empty()) return;
  StartMasks();
  const auto started = Clock::now();
  const int32_t status = decoder_.Decode(batch_.View());
  const auto decoded = Clock::now();
  ++stats_.steps;
  ++stats_.occupancy[OccupancyBucket(entries_.size())];
  stats_.decode_ms += Milliseconds(decoded - started);

  if (status == 0) {
    TakeDecoded(Milliseconds(decoded - started));
    SampleOutputs();
    stats_.sample_ms += Milliseconds(started - planning) + Milliseconds(Clock::now() - decoded);
    return;
  }
  sampling_.FinishMasks();
  Resynchronise();
  if (status == 2) return;  // aborted: those cancelled leave before the next step
  if (status == 1) {
    NoRoom();
    return;
  }
  for (const BatchEntry& entry : entries_) {
    Fail(*entry.request, {"decode_failed", 500, "", "llama_decode failed with status " + std::to_string(status) + "."});
  }
}

void TokenLoop::MakeDrafts() {
  if (draft_source_ == nullptr) return;
  std::vector<Request*> decoding;
  for (const auto& request : running_) {
    request->drafts.clear();
    if (!request->paused && request->state == RequestState::kDecoding) decoding.push_back(request.get());
  }
  draft_source_->Draft(decoding);
  for (Request* request : decoding) {
    // The last token of an answer is not decoded, so nothing is drafted behind the one before it.
    const int32_t most = request->spec->max_tokens;
    if (most < 0) continue;
    const size_t wanted = static_cast<size_t>(std::max(0, most - static_cast<int32_t>(request->generated()) - 1));
    if (request->drafts.size() > wanted) request->drafts.resize(wanted);
  }
}

StepPlan TokenLoop::Plan() {
  std::vector<SequenceView> views;
  views.reserve(running_.size());
  uint32_t decoding = 0;
  for (const auto& request : running_) {
    const bool decodes = request->state == RequestState::kDecoding;
    decoding += decodes && !request->paused ? 1 : 0;
    views.push_back({request->pending(), cells_.OwnCells(request->sequence), decodes, request->spec->priority,
                     request->arrival, request->paused, static_cast<uint32_t>(request->drafts.size())});
  }
  // Kept cells count as free: they are taken back in FillBatch, as many as the plan needs.
  const uint32_t budget = budget_.Tokens(decoding);
  StepPlan plan = PlanStep(views, {batch_size_, budget, std::max(micro_batch_size_, kAloneFactor * budget),
                                   cells_.total() - cells_.active()});
  if (decoder_.info().window > 0) LeaveOutDrafts(views, plan);
  return plan;
}

// Within one llama_decode, a micro-batch may be put where an earlier one has left its window behind: a draft that is
// taken back would have taken cells with it. In a single micro-batch nothing is lost.
void TokenLoop::LeaveOutDrafts(std::span<const SequenceView> views, StepPlan& plan) const {
  uint64_t tokens = 0;
  for (const StepPlan::Share& share : plan.shares) tokens += share.tokens;
  if (tokens <= micro_batch_size_) return;
  for (StepPlan::Share& share : plan.shares) share.tokens = std::min(share.tokens, views[share.index].pending);
}

void TokenLoop::FillBatch(const StepPlan& plan) {
  entries_.clear();
  batch_.Clear();
  std::vector<Request*> preempted;
  for (const size_t index : plan.preempted) preempted.push_back(running_[index].get());
  uint32_t planned = 0;
  for (const StepPlan::Share& share : plan.shares) {
    Request& request = *running_[share.index];
    const uint32_t known = std::min(share.tokens, request.pending());
    const bool last = known == request.pending();
    request.drafts.resize(last ? share.tokens - known : 0);
    planned += share.tokens;
    int32_t at = -1;
    for (uint32_t i = 0; i < known; ++i) {
      const uint32_t position = request.cached + i;
      at = batch_.Add(request.tokens[position], position, request.sequence, last && i + 1 == known);
    }
    for (uint32_t i = 0; i < request.drafts.size(); ++i) {
      batch_.Add(request.drafts[i], request.cached + known + i, request.sequence, true);
    }
    entries_.push_back({&request, known, last ? at : -1});
  }
  if (entries_.empty() && preempted.empty()) {
    // Alone, and the cache is full.
    const auto alone = std::find_if(running_.begin(), running_.end(), [](const auto& each) { return !each->paused; });
    Finish(**alone, FinishReason::kLength);
  }
  // What is preempted for one that is alone may free more than the plan could know: then the next turn goes on.
  for (Request* request : preempted) Preempt(*request);
  cells_.EvictFor(planned);
}

void TokenLoop::StartMasks() {
  std::vector<Request*> masked;
  for (const BatchEntry& entry : entries_) {
    if (entry.first_output >= 0 && entry.request->constraint) masked.push_back(entry.request);
  }
  sampling_.StartMasks(std::move(masked));
}

void TokenLoop::TakeDecoded(double decode_ms) {
  crowded_ = false;
  uint32_t prompt_tokens = 0;
  uint32_t decoding = 0;
  for (const BatchEntry& entry : entries_) {
    Request& request = *entry.request;
    Advance(request, request.cached + entry.tokens);
    const bool decodes = request.state == RequestState::kDecoding;
    decoding += decodes ? 1 : 0;
    prompt_tokens += decodes ? 0 : entry.tokens;
  }
  stats_.prompt_tokens += prompt_tokens;
  budget_.Observe(prompt_tokens, decoding, decode_ms);
  if (entries_.size() > 1) ++stats_.shared_steps;
  stats_.peak_sequences = std::max(stats_.peak_sequences, static_cast<uint32_t>(entries_.size()));
}

// llama.cpp found no room although the count said so (a cache with a layout of its own): make room and try again.
// Nobody is let in until a step has succeeded.
void TokenLoop::NoRoom() {
  crowded_ = true;
  if (cells_.EvictOldest()) return;
  const auto last = std::max_element(entries_.begin(), entries_.end(),
                                     [](const auto& a, const auto& b) { return a.request->before(*b.request); });
  if (entries_.size() > 1) {
    Preempt(*last->request);
  } else {
    Finish(*last->request, FinishReason::kLength);
  }
}

// After an aborted or failed decode: earlier parts of the batch may be in the cache, the rest is not.
void TokenLoop::Resynchronise() {
  for (const BatchEntry& entry : entries_) {
    Request& request = *entry.request;
    Advance(request, std::min(decoder_.CountCells(request.sequence), static_cast<uint32_t>(request.tokens.size())));
    if (!request.drafts.empty()) cells_.Cut(request.sequence);
    request.drafts.clear();
  }
}

// The request's cells reach up to `cached` of its tokens now.
void TokenLoop::Advance(Request& request, uint32_t cached) {
  if (cached <= request.cached) return;
  cells_.Append(request.sequence, std::span(request.tokens).subspan(request.cached, cached - request.cached));
  request.cached = cached;
}

void TokenLoop::SampleOutputs() {
  jobs_.clear();
  for (const BatchEntry& entry : entries_) {
    Request& request = *entry.request;
    if (entry.first_output < 0 || request.cancelled()) continue;
    if (request.state == RequestState::kPrefilling) {
      request.state = RequestState::kDecoding;
      if (request.first_token == Clock::time_point{}) request.first_token = Clock::now();
    }
    if (request.spec->max_tokens == 0) {
      Finish(request, FinishReason::kLength);
      continue;
    }
    SampleJob job;
    job.request = &request;
    for (size_t i = 0; i <= request.drafts.size(); ++i) {
      job.logits.push_back(decoder_.Logits(entry.first_output + static_cast<int32_t>(i)));
    }
    jobs_.push_back(std::move(job));
  }
  sampling_.Sample(jobs_);
  for (SampleJob& job : jobs_) Append(*job.request, job);
}

void TokenLoop::Append(Request& request, SampleJob& job) {
  if (!request.drafts.empty()) {
    // All sampled tokens but the last are drafts that were right: their cells are as good as any.
    const size_t right = job.sampled.empty() ? 0 : job.sampled.size() - 1;
    cells_.Append(request.sequence, std::span(request.drafts).first(right));
    request.cached += static_cast<uint32_t>(right);
    if (right < request.drafts.size()) cells_.Cut(request.sequence);
    draft_source_->Confirm(request, request.drafts.size(), right);
    request.drafted += static_cast<uint32_t>(request.drafts.size());
    request.accepted += static_cast<uint32_t>(right);
    stats_.drafted_tokens += request.drafts.size();
    stats_.accepted_tokens += right;
    request.drafts.clear();
  }
  for (const SampleJob::Sampled& sampled : job.sampled) {
    if (const auto reason = AppendToken(request, sampled)) {
      Finish(request, *reason);
      return;
    }
  }
  if (job.failure) Fail(request, *job.failure);
}

std::optional<FinishReason> TokenLoop::AppendToken(Request& request, const SampleJob::Sampled& sampled) {
  request.tokens.push_back(sampled.token);
  ++stats_.generated_tokens;
  if (decoder_.EndsGeneration(sampled.token)) {
    PublishText(request, 1, {});
    return FinishReason::kStop;
  }
  piece_.clear();
  decoder_.AppendPiece(sampled.token, piece_);
  request.ended_line = request.ended_line || piece_.find('\n') != std::string::npos;
  std::string text;
  const bool stopped =
      request.text->Push(piece_, sampled.logprobs ? LogprobsJson(*sampled.logprobs, decoder_) : std::string(), text);
  PublishText(request, 1, std::move(text));
  if (stopped || sampled.complete) return FinishReason::kStop;
  const RequestSpec& spec = *request.spec;
  if (spec.max_tokens >= 0 && request.generated() >= static_cast<uint32_t>(spec.max_tokens)) {
    return FinishReason::kLength;
  }
  if (spec.predict_ms > 0 && request.ended_line &&
      Clock::now() - request.first_token >= std::chrono::milliseconds(spec.predict_ms)) {
    return FinishReason::kLength;
  }
  // The token has no cell to be decoded into.
  if (request.tokens.size() > cells_.total()) return FinishReason::kLength;
  return std::nullopt;
}

bool TokenLoop::ShouldAbort(void* data) {
  const auto* self = static_cast<const TokenLoop*>(data);
  if (self->stopping_.load(std::memory_order_relaxed)) return true;
  if (self->entries_.empty()) return false;
  return std::all_of(self->entries_.begin(), self->entries_.end(),
                     [](const BatchEntry& entry) { return entry.request->cancelled(); });
}

}  // namespace tokenloop
