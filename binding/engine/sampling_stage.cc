#include "engine/sampling_stage.h"

#include <exception>
#include <utility>

namespace tokenloop {
namespace {

// Waking a helper costs some ten microseconds: less work than this is done before it has arrived.
constexpr double kWorthSharingUs = 60;

}  // namespace

void SamplingStage::StartMasks(std::vector<Request*> requests) {
  if (workers_.helpers() == 0 || requests.empty()) return;
  masks_started_ = true;
  const size_t count = requests.size();
  workers_.Start(count,
                 [requests = std::move(requests)](size_t index, size_t) { requests[index]->constraint->Prepare(); });
}

void SamplingStage::FinishMasks() {
  if (!masks_started_) return;
  masks_started_ = false;
  workers_.Finish();
}

void SamplingStage::Sample(std::span<SampleJob> jobs) {
  FinishMasks();
  if (jobs.empty()) return;
  const auto started = Clock::now();
  const bool shared =
      workers_.helpers() > 0 && jobs.size() > 1 && job_us_ * static_cast<double>(jobs.size()) > kWorthSharingUs;
  if (shared) {
    workers_.Run(jobs.size(), [&](size_t index, size_t worker) { SampleOne(jobs[index], scratch_[worker]); });
    return;
  }
  for (SampleJob& job : jobs) SampleOne(job, scratch_.front());
  const double us = std::chrono::duration<double, std::micro>(Clock::now() - started).count();
  const double mean = us / static_cast<double>(jobs.size());
  job_us_ = job_us_ == 0 ? mean : 0.9 * job_us_ + 0.1 * mean;
}

void SamplingStage::SampleOne(SampleJob& job, Scratch& scratch) const try {
  Request& request = *job.request;
  for (size_t i = 0; i < job.logits.size(); ++i) {
    const float* logits = job.logits[i];
    TokenBits allowed;  // all
    if (request.constraint) {
      Result<TokenBits> mask = request.constraint->Mask();
      if (!mask) {
        job.failure = mask.failure();
        return;
      }
      allowed = mask.value();
    }
    const llama_token token =
        logits == nullptr ? LLAMA_TOKEN_NULL : request.sampler->Sample(logits, allowed, scratch.candidates);
    if (token == LLAMA_TOKEN_NULL) {
      job.failure = Failure{"invalid_logits", 500, "", "The model's logits are not numbers, or every token is banned."};
      return;
    }
    request.sampler->Accept(token);
    SampleJob::Sampled sampled = {token, std::nullopt, false};
    const bool ends = decoder_.EndsGeneration(token);
    if (!ends && request.spec->logprobs >= 0) {
      sampled.logprobs =
          ComputeLogprobs({logits, decoder_.info().vocab_size}, token, static_cast<uint32_t>(request.spec->logprobs));
    }
    if (!ends && request.constraint) {
      scratch.piece.clear();
      decoder_.AppendPiece(token, scratch.piece);
      if (!request.constraint->Accept(token, scratch.piece)) {
        job.failure = Failure{"grammar_too_ambiguous", 400, "grammar", "The grammar is too ambiguous to be followed."};
        return;
      }
      sampled.complete = request.constraint->Complete();
    }
    const bool last = ends || sampled.complete;
    job.sampled.push_back(std::move(sampled));
    if (last || i >= request.drafts.size() || request.drafts[i] != token) return;
  }
} catch (const std::exception& error) {
  job.failure = Failure{"internal_error", 500, "", error.what()};
}

}  // namespace tokenloop
