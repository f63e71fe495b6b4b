#include "bridge/engine_object.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bridge/errors.h"
#include "bridge/estimate_task.h"
#include "bridge/promise_task.h"
#include "bridge/requests.h"

namespace tokenloop {
namespace {

const Failure kClosed = {"engine_closed", 503, "", "The engine is closed."};

// Shared by the closures of one engine object. JavaScript thread.
struct EngineHandle {
  Environment& environment;
  std::shared_ptr<Engine> engine;
  std::shared_ptr<EventChannel> channel;
  Napi::ObjectReference closing;  // the promise of the first close()
};

using Handle = std::shared_ptr<EngineHandle>;

Napi::Value Throw(Napi::Env env, const Failure& failure) {
  ToError(env, failure).ThrowAsJavaScriptException();
  return env.Undefined();
}

// No C++ exception crosses Node-API.
template <typename Body>
Napi::Value Guarded(Napi::Env env, Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return Throw(env, {"internal_error", 500, "", error.what()});
  }
}

// A task that runs on the engine's prompt thread.
class PromptTask : public PromiseTask {
 public:
  using PromiseTask::PromiseTask;

  // JavaScript thread.
  static Napi::Value Start(const std::shared_ptr<PromptTask>& task, Engine& engine) {
    task->Begin();
    // The raw pointer is safe: the environment keeps the task until it has settled, which happens after this job ran.
    PromptTask* raw = task.get();
    const bool posted = engine.Post([raw](const Model* model) {
      raw->model_ = model;
      raw->Run();
    });
    if (!posted) task->RunFailed(kClosed);
    return task->promise();
  }

 protected:
  std::optional<Failure> Execute() override {
    if (model_ == nullptr) return kClosed;
    try {
      return Work(*model_);
    } catch (const std::exception& error) {
      return Failure{"internal_error", 500, "", error.what()};
    }
  }
  virtual std::optional<Failure> Work(const Model& model) = 0;

 private:
  const Model* model_ = nullptr;
};

class TokenizeTask : public PromptTask {
 public:
  TokenizeTask(Napi::Env env, std::string text, bool add_special, bool parse_special)
      : PromptTask(env), text_(std::move(text)), add_special_(add_special), parse_special_(parse_special) {}

 protected:
  std::optional<Failure> Work(const Model& model) override {
    tokens_ = model.Tokenize(text_, add_special_, parse_special_);
    return std::nullopt;
  }
  void Resolve(Napi::Env env, const Napi::Promise::Deferred& deferred) override {
    Napi::Int32Array array = Napi::Int32Array::New(env, tokens_.size());
    std::copy(tokens_.begin(), tokens_.end(), array.Data());
    deferred.Resolve(array);
  }

 private:
  const std::string text_;
  const bool add_special_;
  const bool parse_special_;
  std::vector<llama_token> tokens_;
};

// The bytes of each token, one after the other.
class PiecesTask : public PromptTask {
 public:
  PiecesTask(Napi::Env env, std::vector<llama_token> tokens) : PromptTask(env), tokens_(std::move(tokens)) {}

 protected:
  std::optional<Failure> Work(const Model& model) override {
    if (auto failure = model.CheckTokens(tokens_)) return failure;
    ends_.reserve(tokens_.size());
    for (const llama_token token : tokens_) {
      model.AppendPiece(token, bytes_, true);
      if (bytes_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
        return Failure{"invalid_request", 400, "tokens", "The text of these tokens is too long."};
      }
      ends_.push_back(static_cast<int32_t>(bytes_.size()));
    }
    return std::nullopt;
  }
  void Resolve(Napi::Env env, const Napi::Promise::Deferred& deferred) override {
    Napi::Uint8Array bytes = Napi::Uint8Array::New(env, bytes_.size());
    std::copy(bytes_.begin(), bytes_.end(), bytes.Data());
    Napi::Int32Array ends = Napi::Int32Array::New(env, ends_.size());
    std::copy(ends_.begin(), ends_.end(), ends.Data());
    Napi::Object object = Napi::Object::New(env);
    object.Set("bytes", bytes);
    object.Set("ends", ends);
    deferred.Resolve(object);
  }

 private:
  const std::vector<llama_token> tokens_;
  std::string bytes_;
  std::vector<int32_t> ends_;
};

class ApplyTemplateTask : public PromptTask {
 public:
  ApplyTemplateTask(Napi::Env env, std::string messages) : PromptTask(env), messages_(std::move(messages)) {}

 protected:
  std::optional<Failure> Work(const Model& model) override {
    auto rendered = model.templates().Render(messages_);
    if (!rendered) return rendered.failure();
    text_ = rendered.value().Text();
    return std::nullopt;
  }
  void Resolve(Napi::Env env, const Napi::Promise::Deferred& deferred) override {
    deferred.Resolve(Napi::String::New(env, text_));
  }

 private:
  const std::string messages_;
  std::string text_;
};

// Saves or restores a prompt cache: waits for the loop, and for the disk.
class PrefixTask : public PromiseTask {
 public:
  PrefixTask(Napi::Env env, Handle handle, std::string key, std::string path, bool saves)
      : PromiseTask(env), handle_(std::move(handle)), key_(std::move(key)), path_(std::move(path)), saves_(saves) {}

 protected:
  std::optional<Failure> Execute() override {
    try {
      return saves_ ? Save() : Restore();
    } catch (const std::exception& error) {
      return Failure{"out_of_memory", 500, "", error.what()};
    }
  }
  void Resolve(Napi::Env env, const Napi::Promise::Deferred& deferred) override {
    Napi::Object object = Napi::Object::New(env);
    object.Set("tokens", static_cast<double>(tokens_));
    object.Set("bytes", static_cast<double>(bytes_));
    deferred.Resolve(object);
  }

 private:
  std::optional<Failure> Save() {
    auto file = handle_->engine->SavePrefix(key_);
    if (!file) return file.failure();
    tokens_ = file.value().tokens();
    auto bytes = WritePrefixFile(path_, file.value());
    if (!bytes) return bytes.failure();
    bytes_ = bytes.value();
    return std::nullopt;
  }
  std::optional<Failure> Restore() {
    auto file = ReadPrefixFile(path_, handle_->engine->info().fingerprint);
    if (!file) return file.failure();
    for (const PrefixFile::Run& run : file.value().runs) bytes_ += run.state.size();
    auto tokens = handle_->engine->RestorePrefix(key_, file.value());
    if (!tokens) return tokens.failure();
    tokens_ = tokens.value();
    return std::nullopt;
  }

  const Handle handle_;
  const std::string key_;
  const std::string path_;
  const bool saves_;
  uint64_t tokens_ = 0;
  uint64_t bytes_ = 0;
};

class CloseTask : public PromiseTask {
 public:
  CloseTask(Napi::Env env, Handle handle) : PromiseTask(env), handle_(std::move(handle)) {}

 protected:
  std::optional<Failure> Execute() override {
    handle_->engine->StopAndJoin();
    return std::nullopt;
  }
  void Resolve(Napi::Env env, const Napi::Promise::Deferred& deferred) override {
    handle_->environment.Drop(handle_->engine);
    handle_->channel->Close();
    deferred.Resolve(env.Undefined());
  }

 private:
  const Handle handle_;
};

Napi::Value Submit(const Handle& handle, const Napi::CallbackInfo& info) {
  auto spec = ReadRequest(info[0]);
  if (info.Env().IsExceptionPending()) return info.Env().Undefined();
  if (!spec) return Throw(info.Env(), spec.failure());
  const uint32_t answers = spec.value().n;
  auto id = handle->engine->Submit(std::move(spec.value()));
  if (!id) return Throw(info.Env(), id.failure());
  handle->environment.AddActive(answers);  // one is released with each last event that is delivered
  return Napi::Number::New(info.Env(), id.value());
}

Napi::Value Cancel(const Handle& handle, const Napi::CallbackInfo& info) {
  if (info[0].IsNumber()) handle->engine->Cancel(info[0].As<Napi::Number>().Uint32Value());
  return info.Env().Undefined();
}

Napi::Value Take(const Handle& handle, const Napi::CallbackInfo& info) {
  if (info[0].IsNumber() && info[1].IsNumber()) {
    const double weight = info[1].As<Napi::Number>().DoubleValue();
    if (weight > 0) handle->engine->Take(info[0].As<Napi::Number>().Uint32Value(), static_cast<uint64_t>(weight));
  }
  return info.Env().Undefined();
}

Napi::Value ReadStats(const Handle& handle, const Napi::CallbackInfo& info) {
  const Stats stats = handle->engine->stats();
  Napi::Object object = Napi::Object::New(info.Env());
  const auto set = [&](const char* name, auto value) { object.Set(name, static_cast<double>(value)); };
  set("queued", stats.queued);
  set("prefilling", stats.prefilling);
  set("decoding", stats.decoding);
  set("paused", stats.paused);
  set("finished", stats.finished);
  set("cancelledQueued", stats.cancelled_queued);
  set("cancelledPrefilling", stats.cancelled_prefilling);
  set("cancelledDecoding", stats.cancelled_decoding);
  set("cancelled", stats.cancelled_queued + stats.cancelled_prefilling + stats.cancelled_decoding);
  set("failed", stats.failed);
  set("timedOut", stats.timed_out);
  set("stalled", stats.stalled);
  set("sequences", stats.sequences);
  set("cellsUsed", stats.cells_used);
  set("cellsCached", stats.cells_cached);
  set("cells", stats.cells);
  set("steps", stats.steps);
  Napi::Array occupancy = Napi::Array::New(info.Env());
  for (uint32_t i = 0; i < stats.occupancy.size(); ++i) occupancy.Set(i, static_cast<double>(stats.occupancy[i]));
  object.Set("stepsBySequences", occupancy);
  set("promptTokens", stats.prompt_tokens);
  set("cachedTokens", stats.cached_tokens);
  set("generatedTokens", stats.generated_tokens);
  set("draftedTokens", stats.drafted_tokens);
  set("acceptedTokens", stats.accepted_tokens);
  set("sharedSteps", stats.shared_steps);
  set("peakSequences", stats.peak_sequences);
  set("preemptions", stats.preemptions);
  set("parkings", stats.parkings);
  set("pauses", stats.pauses);
  set("evictions", stats.evictions);
  set("decodeMs", stats.decode_ms);
  set("sampleMs", stats.sample_ms);
  set("loopMs", stats.loop_ms);
  return object;
}

Napi::Value Tokenize(const Handle& handle, const Napi::CallbackInfo& info) {
  if (!info[0].IsString() || !info[1].IsBoolean() || !info[2].IsBoolean()) {
    return Throw(info.Env(), {"invalid_request", 400, "text", "tokenize takes (string, boolean, boolean)."});
  }
  const auto task =
      std::make_shared<TokenizeTask>(info.Env(), info[0].As<Napi::String>().Utf8Value(),
                                     info[1].As<Napi::Boolean>().Value(), info[2].As<Napi::Boolean>().Value());
  return PromptTask::Start(task, *handle->engine);
}

Napi::Value Pieces(const Handle& handle, const Napi::CallbackInfo& info) {
  if (!info[0].IsTypedArray() || info[0].As<Napi::TypedArray>().TypedArrayType() != napi_int32_array) {
    return Throw(info.Env(), {"invalid_request", 400, "tokens", "pieces takes an Int32Array."});
  }
  const auto array = info[0].As<Napi::Int32Array>();
  const auto task = std::make_shared<PiecesTask>(
      info.Env(), std::vector<llama_token>(array.Data(), array.Data() + array.ElementLength()));
  return PromptTask::Start(task, *handle->engine);
}

Napi::Value ApplyTemplate(const Handle& handle, const Napi::CallbackInfo& info) {
  if (!info[0].IsString()) {
    return Throw(info.Env(), {"invalid_request", 400, "messages", "applyTemplate takes a JSON text."});
  }
  const auto task = std::make_shared<ApplyTemplateTask>(info.Env(), info[0].As<Napi::String>().Utf8Value());
  return PromptTask::Start(task, *handle->engine);
}

Napi::Value StartPrefixTask(const Handle& handle, const Napi::CallbackInfo& info, bool saves) {
  if (!info[0].IsString() || !info[1].IsString()) {
    return Throw(info.Env(), {"invalid_request", 400, "path", "Expected a prompt cache key and a path."});
  }
  const auto task = std::make_shared<PrefixTask>(info.Env(), handle, info[0].As<Napi::String>().Utf8Value(),
                                                 info[1].As<Napi::String>().Utf8Value(), saves);
  task->StartThread();
  return task->promise();
}

Napi::Value SavePrefix(const Handle& handle, const Napi::CallbackInfo& info) {
  return StartPrefixTask(handle, info, true);
}

Napi::Value RestorePrefix(const Handle& handle, const Napi::CallbackInfo& info) {
  return StartPrefixTask(handle, info, false);
}

Napi::Value Close(const Handle& handle, const Napi::CallbackInfo& info) {
  if (handle->closing.IsEmpty()) {
    const auto task = std::make_shared<CloseTask>(info.Env(), handle);
    handle->closing = Napi::Persistent(task->promise().As<Napi::Object>());
    task->StartThread();
  }
  return handle->closing.Value();
}

Napi::Object InfoObject(Napi::Env env, const ModelInfo& info) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("description", info.description);
  object.Set("name", info.name);
  object.Set("parameters", static_cast<double>(info.parameters));
  object.Set("size", static_cast<double>(info.size));
  object.Set("vocabSize", info.vocab_size);
  object.Set("trainingContext", info.training_context);
  object.Set("contextSize", info.context_size);
  object.Set("parallel", info.parallel);
  object.Set("batchSize", info.batch_size);
  object.Set("chatTemplate", info.chat_template);
  object.Set("memory", MemoryObject(env, info.memory));
  return object;
}

class LoadTask : public PromiseTask {
 public:
  LoadTask(Napi::Env env, EngineConfig config, const Napi::Function& on_events, const Napi::Value& on_progress)
      : PromiseTask(env), config_(std::move(config)), on_events_(Napi::Persistent(on_events)) {
    if (on_progress.IsFunction()) on_progress_ = Napi::Persistent(on_progress.As<Napi::Function>());
    reports_ = !on_progress_.IsEmpty();
  }

  void Cancel() { cancelled_ = true; }

 protected:
  std::optional<Failure> Execute() override {
    auto model = Model::Load(config_, [this](float fraction) { return Report(fraction); });
    if (!model) return model.failure();
    model_ = std::move(model.value());
    return std::nullopt;
  }

  void Resolve(Napi::Env env, const Napi::Promise::Deferred& deferred) override {
    const auto channel = std::make_shared<EventChannel>(environment(), on_events_.Value());
    const auto engine = std::make_shared<Engine>(std::move(model_), config_, channel);
    if (!engine->Start()) {
      deferred.Reject(ToError(env, {"out_of_memory", 500, "", "No native thread could be started."}).Value());
      return;
    }
    deferred.Resolve(MakeEngineObject(env, engine, channel));
  }

  void RequestStop() override { Cancel(); }

 private:
  // Load thread. At most one report waits for the JavaScript thread; it reads the newest value.
  bool Report(float fraction) {
    progress_ = fraction;
    if (reports_ && !report_waits_.exchange(true)) {
      environment().Post([this](Napi::Env env) {
        report_waits_ = false;
        on_progress_.Call({Napi::Number::New(env, progress_)});
        if (env.IsExceptionPending()) {
          const Napi::Error error = env.GetAndClearPendingException();
          napi_fatal_exception(env, error.Value());
        }
      });
    }
    return !cancelled_;
  }

  const EngineConfig config_;
  Napi::FunctionReference on_events_;
  Napi::FunctionReference on_progress_;
  bool reports_ = false;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> report_waits_{false};
  std::atomic<float> progress_{0};
  std::unique_ptr<Model> model_;
};

}  // namespace

Napi::Object MakeEngineObject(Napi::Env env, const std::shared_ptr<Engine>& engine,
                              const std::shared_ptr<EventChannel>& channel) {
  Environment& environment = Environment::Of(env);
  environment.Keep(engine);
  const auto handle = std::make_shared<EngineHandle>(EngineHandle{environment, engine, channel, {}});
  Napi::Object object = Napi::Object::New(env);
  object.Set("info", InfoObject(env, engine->info()));
  const auto method = [&](const char* name, Napi::Value (*function)(const Handle&, const Napi::CallbackInfo&)) {
    object.Set(name, Napi::Function::New(
                         env,
                         [handle, function](const Napi::CallbackInfo& info) {
                           return Guarded(info.Env(), [&] { return function(handle, info); });
                         },
                         name));
  };
  method("submit", Submit);
  method("cancel", Cancel);
  method("take", Take);
  method("stats", ReadStats);
  method("tokenize", Tokenize);
  method("pieces", Pieces);
  method("applyTemplate", ApplyTemplate);
  method("savePrefix", SavePrefix);
  method("restorePrefix", RestorePrefix);
  method("close", Close);
  return object;
}

namespace {

Napi::Value StartLoad(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto config = ReadLoadOptions(info[0]);
  if (env.IsExceptionPending()) return env.Undefined();
  if (!config) return Throw(env, config.failure());
  if (!info[1].IsFunction()) {
    return Throw(env, {"invalid_request", 400, "onEvents", "'onEvents' must be a function."});
  }
  const auto task = std::make_shared<LoadTask>(env, std::move(config.value()), info[1].As<Napi::Function>(), info[2]);
  Napi::Object load = Napi::Object::New(env);
  load.Set("promise", task->promise());
  const std::weak_ptr<LoadTask> weak = task;
  load.Set("cancel", Napi::Function::New(env, [weak](const Napi::CallbackInfo&) {
             if (const auto running = weak.lock()) running->Cancel();
           }));
  task->StartThread();
  return load;
}

}  // namespace

Napi::Value LoadModel(const Napi::CallbackInfo& info) {
  return Guarded(info.Env(), [&] { return StartLoad(info); });
}

}  // namespace tokenloop
