#include "engine/engine.h"

#include <algorithm>
#include <exception>
#include <future>
#include <limits>
#include <new>

#include "engine/prefix_store.h"

namespace tokenloop {

Engine::Engine(std::unique_ptr<Model> model, const EngineConfig& config, std::shared_ptr<EventSink> sink)
    : model_(std::move(model)),
      sink_(std::move(sink)),
      info_(model_->info()),
      most_live_(config.queue_size + model_->info().parallel),
      loop_(*model_, model_->draft_source(), config, *sink_, [this](uint32_t id) { AnswerFinished(id); }) {
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
                     "The queue is full: " + std::to_string(live_answers_) + " answers are waiting or running.",
                     RetryAfter()};
    }
    do {
      last_id_ = last_id_ == std::numeric_limits<int32_t>::max() ? 1 : last_id_ + 1;
    } while (live_.contains(last_id_));
    id = last_id_;
    const auto control = std::make_shared<RequestControl>();
    live_[id] = {control, spec->n};
    live_answers_ += spec->n;
    std::vector<std::shared_ptr<Request>> answers;
    for (uint32_t choice = 0; choice < spec->n; ++choice) {
      answers.push_back(std::make_shared<Request>(id, choice, spec, control));
      loop_.Submit(answers.back());
    }
    jobs_.push_back([this, answers = std::move(answers)](const Model* model) {
      if (model != nullptr) PrepareAll(answers);
    });
  }
  wake_.notify_one();
  return id;
}

void Engine::AnswerFinished(uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (last_finish_ != Clock::time_point{}) {
    // A pause without requests says nothing about how long a full queue takes.
    const double ms = std::min(Milliseconds(now - last_finish_), 60000.0);
    finish_interval_ms_ = finish_interval_ms_ == 0 ? ms : 0.8 * finish_interval_ms_ + 0.2 * ms;
  }
  last_finish_ = now;
  const auto found = live_.find(id);
  --live_answers_;
  if (--found->second.answers == 0) live_.erase(found);
}

// A place is free when the next answer is done. Milliseconds, under mutex_.
uint32_t Engine::RetryAfter() const {
  if (finish_interval_ms_ == 0) return 1000;
  return static_cast<uint32_t>(std::clamp(finish_interval_ms_, 10.0, 60000.0));
}

std::shared_ptr<RequestControl> Engine::Find(uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(id);
  return found == live_.end() ? nullptr : found->second.control;
}

void Engine::Cancel(uint32_t id) {
  const auto control = Find(id);
  if (!control) return;
  control->cancelled = true;
  loop_.Wake();
}

void Engine::Take(uint32_t id, uint64_t weight) {
  const auto control = Find(id);
  if (!control) return;
  control->taken += weight;
  if (control->awaited) loop_.Wake();
}

template <typename T, typename Body>
Result<T> Engine::OnLoop(Body body) {
  std::promise<void> promise;
  Result<T> result = Failure{"engine_closed", 503, "", "The engine is closed."};
  const auto run = [&](Cells* cells) {
    if (cells == nullptr) return;
    try {
      result = body(*cells);
    } catch (const std::exception& error) {
      result = Failure{"out_of_memory", 500, "", error.what()};
    }
  };
  loop_.Post({run, [&] { promise.set_value(); }});
  promise.get_future().wait();
  return result;
}

// The model is there as long as the loop runs.
Result<PrefixFile> Engine::SavePrefix(const std::string& key) {
  return OnLoop<PrefixFile>([&](Cells& cells) { return tokenloop::SavePrefix(cells, *model_, key); });
}

Result<uint64_t> Engine::RestorePrefix(const std::string& key, const PrefixFile& file) {
  return OnLoop<uint64_t>([&](Cells& cells) { return tokenloop::RestorePrefix(cells, *model_, key, file); });
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
    } else if (spec.prompt) {
      rendered.pieces.push_back(*spec.prompt);
    }
    if (spec.prompt_tokens) {
      prompt.tokens = *spec.prompt_tokens;
      prompt.failure = model_->CheckTokens(prompt.tokens);
      if (prompt.failure) prompt.failure->param = "prompt";
    } else {
      prompt.tokens = model_->TokenizePieces(rendered.pieces);
    }
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
  for (size_t i = prompt.size() - lookback; i < prompt.size(); ++i) sampler.value()->See(prompt[i]);
  return sampler;
}

}  // namespace tokenloop
