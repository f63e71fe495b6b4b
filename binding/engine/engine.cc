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
        live_.erase(id);
      }) {
  ListStoppable(this);
  RegisterExitHandler();
}

Engine::~Engine() {
  StopAndJoin();
  UnlistStoppable(this);
}

bool Engine::Start() {
  return loop_thread_.Start([this] { loop_.Run(); }) && prompt_thread_.Start([this] { RunPromptThread(); });
}

Result<uint32_t> Engine::Submit(RequestSpec spec) {
  std::shared_ptr<Request> request;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return Failure{"engine_closed", 503, "", "The engine is closed."};
    if (live_.size() >= most_live_) {
      return Failure{"queue_full", 429, "",
                     "The queue is full: " + std::to_string(live_.size()) + " requests are waiting or running."};
    }
    do {
      last_id_ = last_id_ == std::numeric_limits<int32_t>::max() ? 1 : last_id_ + 1;
    } while (live_.contains(last_id_));
    request = std::make_shared<Request>(last_id_, std::move(spec));
    live_.emplace(request->id, request);
    loop_.Submit(request);
    jobs_.push_back([this, request](const Model* model) {
      if (model != nullptr && !request->cancelled) loop_.Ready(request, Prepare(*request));
    });
  }
  wake_.notify_one();
  return request->id;
}

void Engine::Cancel(uint32_t id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    found->second->cancelled = true;
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
}

void Engine::Close() {
  StopAndJoin();
  const std::lock_guard join_lock(join_mutex_);
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

PreparedPrompt Engine::Prepare(const Request& request) const {
  PreparedPrompt prompt;
  try {
    const RequestSpec& spec = request.spec;
    auto sampler = Sampler::Create(model_->vocab(), spec.sampling, model_->info().context_size);
    if (!sampler) {
      prompt.failure = sampler.failure();
      return prompt;
    }
    prompt.sampler = std::move(sampler.value());
    prompt.stops = spec.stop;

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
    bool first = true;
    for (const std::string& piece : rendered.pieces) {
      const std::vector<llama_token> tokens = model_->Tokenize(piece, first, true);
      prompt.tokens.insert(prompt.tokens.end(), tokens.begin(), tokens.end());
      first = false;
    }
    if (prompt.tokens.empty()) {
      prompt.failure = Failure{"empty_prompt", 400, spec.messages ? "messages" : "prompt", "The prompt has no tokens."};
      return prompt;
    }
    const size_t lookback = std::min<size_t>(prompt.sampler->lookback(), prompt.tokens.size());
    for (size_t i = prompt.tokens.size() - lookback; i < prompt.tokens.size(); ++i) {
      prompt.sampler->Accept(prompt.tokens[i]);
    }
  } catch (const std::bad_alloc&) {
    prompt.failure = Failure{"out_of_memory", 500, "", "Not enough memory to prepare the prompt."};
  } catch (const std::exception& error) {
    prompt.failure =
        Failure{"prompt_failed", 500, "", std::string("The prompt could not be prepared: ") + error.what()};
  }
  return prompt;
}

}  // namespace tokenloop
