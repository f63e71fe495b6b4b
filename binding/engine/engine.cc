#include "engine/engine.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <new>

namespace tokenloop {

Engine::Engine(std::unique_ptr<Model> model, const EngineConfig& config, std::shared_ptr<EventSink> sink)
    : model_(std::move(model)),
      sink_(std::move(sink)),
      info_(model_->info()),
      most_live_(config.queue_size + model_->info().parallel),
      loop_(*model_, config, *sink_, [this](uint32_t id) {
        const std::lock_guard lock(mutex_);
        const auto found = live_.find(id);
        --live_answers_;
        if (--found->second.answers == 0) live_.erase(found);
      }) {
  grammars_.emplace(*model_);
  ListStoppable(this);
  static std::once_flag after_first_load;
  std::call_once(after_first_load, RegisterExitHandler);
}

Engine::~Engine() {
  StopAndJoin();
  UnlistStoppable(this);
}

bool Engine::Start() {
  return loop_thread_.Start([this] { loop_.Run(); }) && prompt_thread_.Start([this] { RunPromptThread(); });
}

Result<uint32_t> Engine::Submit(RequestSpec request_spec) {
  const auto spec = std::make_shared<const RequestSpec>(std::move(request_spec));
  uint32_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return Failure{"engine_closed", 503, "", "The engine is closed."};
    if (live_answers_ + spec->n > most_live_) {
      return Failure{"queue_full", 429, "",
                     "The queue is full: " + std::to_string(live_answers_) + " answers are waiting or running."};
    }
    do {
      last_id_ = last_id_ == std::numeric_limits<int32_t>::max() ? 1 : last_id_ + 1;
    } while (live_.contains(last_id_));
    id = last_id_;
    const auto cancellation = std::make_shared<std::atomic<bool>>(false);
    live_[id] = {cancellation, spec->n};
    live_answers_ += spec->n;
    std::vector<std::shared_ptr<Request>> answers;
    for (uint32_t choice = 0; choice < spec->n; ++choice) {
      answers.push_back(std::make_shared<Request>(id, choice, spec, cancellation));
      loop_.Submit(answers.back());
    }
    jobs_.push_back([this, answers = std::move(answers)](const Model* model) {
      if (model != nullptr) PrepareAll(answers);
    });
  }
  wake_.notify_one();
  return id;
}

void Engine::Cancel(uint32_t id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    *found->second.cancellation = true;
  }
  loop_.Wake();
}

bool Engine::Post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

void Engine::StopAndJoin() {
  const std::lock_guard join_lock(join_mutex_);
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake_.notify_one();
  loop_.Stop();
  loop_thread_.Join();
  prompt_thread_.Join();
  grammars_.reset();
  model_.reset();
}

void Engine::RunPromptThread() {
  while (true) {
    Job job;
    bool closed = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closed_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      closed = closed_;
    }
    job(closed ? nullptr : model_.get());
  }
}

// Prompt thread: the prompt is rendered and tokenised once for all answers.
void Engine::PrepareAll(const std::vector<std::shared_ptr<Request>>& answers) {
  const RequestSpec& spec = *answers.front()->spec;
  if (answers.front()->cancelled()) return;  // the loop ends them without
  const PreparedPrompt prompt = Prepare(spec);
  for (const auto& answer : answers) {
    PreparedPrompt own;
    try {
      own = {prompt.tokens, prompt.stops, nullptr, prompt.grammar, prompt.failure};
      if (!own.failure) {
        auto sampler = MakeSampler(spec, answer->choice, own.tokens);
        if (sampler) {
          own.sampler = std::move(sampler.value());
        } else {
          own.failure = sampler.failure();
        }
      }
    } catch (const std::exception& error) {
      own.failure = Failure{"prompt_failed", 500, "", error.what()};
    }
    loop_.Ready(answer, std::move(own));
  }
}

PreparedPrompt Engine::Prepare(const RequestSpec& spec) {
  PreparedPrompt prompt;
  try {
    prompt.stops = spec.stop;
    if (!spec.grammar.empty()) {
      auto grammar = grammars_->Compile(spec.grammar);
      if (!grammar) {
        prompt.failure = grammar.failure();
        return prompt;
      }
      prompt.grammar = std::move(grammar.value());
    }
    RenderedPrompt rendered;
    if (spec.messages) {
      auto result = model_->templates().Render(*spec.messages);
      if (!result) {
        prompt.failure = result.failure();
        return prompt;
      }
      rendered = std::move(result.value());
      prompt.stops.insert(prompt.stops.end(), rendered.stops.begin(), rendered.stops.end());
    } else {
      rendered.pieces.push_back(*spec.prompt);
    }
    prompt.tokens = model_->TokenizePieces(rendered.pieces);
    if (prompt.tokens.empty()) {
      prompt.failure = Failure{"empty_prompt", 400, spec.messages ? "messages" : "prompt", "The prompt has no tokens."};
    }
  } catch (const std::bad_alloc&) {
    prompt.failure = Failure{"out_of_memory", 500, "", "Not enough memory to prepare the prompt."};
  } catch (const std::exception& error) {
    prompt.failure =
        Failure{"prompt_failed", 500, "", std::string("The prompt could not be prepared: ") + error.what()};
  }
  return prompt;
}

// Answer i of a request with seed s draws what a request with seed s + i draws.
Result<std::unique_ptr<Sampler>> Engine::MakeSampler(const RequestSpec& spec, uint32_t choice,
                                                     const std::vector<llama_token>& prompt) const {
  SamplingParams params = spec.sampling;
  if (params.seed) *params.seed += choice;
  auto sampler = Sampler::Create(model_->vocab(), params, info_.context_size);
  if (!sampler) return sampler;
  const size_t lookback = std::min<size_t>(sampler.value()->lookback(), prompt.size());
  for (size_t i = prompt.size() - lookback; i < prompt.size(); ++i) sampler.value()->Accept(prompt[i]);
  return sampler;
}

}  // namespace tokenloop
