#include "engine/draft_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <string>

#include "engine/context_params.h"
#include "sampling/largest.h"
#include "sampling/logprobs.h"

namespace tokenloop {
namespace {

// A guess that the small model itself does not believe in ends the draft.
constexpr double kLeastProbability = 0.4;
// Of the time that a step may take, so much goes into following prompts.
constexpr double kCatchUpShare = 0.25;
constexpr uint32_t kBatch = 512;

// Token ids must mean the same to both.
std::string Difference(const llama_vocab* a, const llama_vocab* b) {
  if (llama_vocab_type(a) != llama_vocab_type(b)) return "another kind of vocabulary";
  if (llama_vocab_n_tokens(a) != llama_vocab_n_tokens(b)) return "a vocabulary of another size";
  for (llama_token token = 0; token < llama_vocab_n_tokens(a); ++token) {
    if (std::strcmp(llama_vocab_get_text(a, token), llama_vocab_get_text(b, token)) != 0) {
      return "another text for token " + std::to_string(token);
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DraftModel>> DraftModel::Load(const EngineConfig& config, const llama_vocab* vocab,
                                                     uint32_t context_size, ggml_threadpool* pool) {
  std::unique_ptr<DraftModel> draft(new DraftModel(config.draft_tokens));
  draft->model_.reset(llama_model_load_from_file(config.draft_model.c_str(), DraftModelParams(config)));
  if (!draft->model_) {
    return Failure{"model_load_failed", 500, "draftModel", "llama.cpp could not load " + config.draft_model};
  }
  const llama_model* model = draft->model_.get();
  const auto mismatch = [&](const std::string& why) {
    return Failure{"draft_model_mismatch", 400, "draftModel", "The draft model cannot guess for this model: " + why};
  };
  if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model)) {
    return mismatch("it is recurrent, so guesses cannot be taken back.");
  }
  const std::string difference = Difference(llama_model_get_vocab(model), vocab);
  if (!difference.empty()) return mismatch("it has " + difference + ".");

  const llama_context_params context = DraftContextParams(config, context_size);
  draft->context_.reset(llama_init_from_model(draft->model_.get(), context));
  if (!draft->context_) {
    return Failure{"out_of_memory", 500, "draftModel", "llama.cpp could not create a context for the draft model."};
  }
  if (pool != nullptr) llama_attach_threadpool(draft->context_.get(), pool, pool);
  draft->vocab_size_ = static_cast<uint32_t>(llama_vocab_n_tokens(vocab));
  draft->budget_ = PromptBudget(config.step_target_ms * kCatchUpShare);
  draft->batch_ = Batch(context.n_batch);
  for (uint32_t i = config.parallel; i > 0; --i) draft->free_sequences_.push_back(static_cast<llama_seq_id>(i - 1));
  return draft;
}

void DraftModel::Draft(std::span<Request* const> requests) {
  std::vector<Guess> guesses;
  uint32_t room = std::min(budget_.Tokens(0), kBatch);
  for (Request* request : requests) {
    request->drafts.clear();
    Slot* const slot = FindSlot(*request);
    if (slot == nullptr) continue;
    if (!CatchUp(*request, *slot, room)) continue;
    guesses.push_back({request, slot});
  }
  // One token for each in turn, as long as there is one that goes on.
  for (uint32_t depth = 0; depth < most_ && !guesses.empty(); ++depth) {
    batch_.Clear();
    for (Guess& guess : guesses) {
      const auto at = static_cast<uint32_t>(guess.slot->tokens.size());
      const llama_token token = depth == 0 ? guess.request->tokens.back() : guess.request->drafts.back();
      guess.output = batch_.Add(token, at, guess.slot->sequence, true);
      guess.slot->tokens.push_back(token);
    }
    if (!Decode()) return;
    std::erase_if(guesses, [&](const Guess& guess) {
      const std::span<const float> logits(llama_get_logits_ith(context_.get(), guess.output), vocab_size_);
      const llama_token token = FirstOfLargest(logits);
      if (token < 0) return true;
      const double probability = std::exp(logits[static_cast<size_t>(token)] - LogSumExp(logits));
      if (probability < kLeastProbability) return true;
      guess.request->drafts.push_back(token);
      return guess.request->drafts.size() >= guess.slot->length.next(most_);
    });
  }
}

void DraftModel::Confirm(const Request& request, size_t drafted, size_t accepted) {
  const auto slot = slots_.find(request.arrival);
  if (slot != slots_.end()) slot->second.length.Confirm(drafted, accepted);
}

void DraftModel::Forget(const Request& request) {
  const auto slot = slots_.find(request.arrival);
  if (slot == slots_.end()) return;
  llama_memory_seq_rm(llama_get_memory(context_.get()), slot->second.sequence, -1, -1);
  free_sequences_.push_back(slot->second.sequence);
  slots_.erase(slot);
}

// Null when others have all sequences: parked answers keep theirs.
DraftModel::Slot* DraftModel::FindSlot(const Request& request) {
  const auto found = slots_.find(request.arrival);
  if (found != slots_.end()) return &found->second;
  if (free_sequences_.empty()) return nullptr;
  Slot& slot = slots_[request.arrival];
  slot.sequence = free_sequences_.back();
  free_sequences_.pop_back();
  return &slot;
}

// Takes back what was guessed wrong and follows the text, as far as `room` reaches. True when only the last token is
// left to decode.
bool DraftModel::CatchUp(Request& request, Slot& slot, uint32_t& room) {
  const auto known = std::span(request.tokens).first(request.tokens.size() - 1);
  const auto same = std::mismatch(slot.tokens.begin(), slot.tokens.end(), known.begin(), known.end());
  const auto common = static_cast<size_t>(same.first - slot.tokens.begin());
  if (common < slot.tokens.size()) {
    llama_memory_seq_rm(llama_get_memory(context_.get()), slot.sequence, static_cast<llama_pos>(common), -1);
    slot.tokens.resize(common);
  }
  const auto count = static_cast<uint32_t>(std::min<size_t>(known.size() - common, room));
  if (count > 0) {
    room -= count;
    batch_.Clear();
    for (uint32_t i = 0; i < count; ++i) {
      const auto at = static_cast<uint32_t>(common + i);
      batch_.Add(known[at], at, slot.sequence, false);
      slot.tokens.push_back(known[at]);
    }
    const auto started = Clock::now();
    if (!Decode()) return false;
    budget_.Observe(count, 0, Milliseconds(Clock::now() - started));
  }
  return slot.tokens.size() == known.size();
}

bool DraftModel::Decode() {
  try {
    if (llama_decode(context_.get(), batch_.View()) == 0) {
      llama_synchronize(context_.get());
      return true;
    }
  } catch (const std::exception&) {
    // As any other failure: there are no guesses.
  }
  Reset();
  return false;
}

// Its cache is full, or it failed: it starts anew. Its guesses so far stand, for they are only guesses.
void DraftModel::Reset() {
  llama_memory_clear(llama_get_memory(context_.get()), false);
  for (auto& [arrival, slot] : slots_) slot.tokens.clear();
}

}  // namespace tokenloop
