#include "bridge/estimate_task.h"

#include <memory>
#include <utility>

#include "bridge/errors.h"
#include "bridge/promise_task.h"
#include "bridge/requests.h"
#include "engine/estimate.h"

namespace tokenloop {
namespace {

class EstimateTask : public PromiseTask {
 public:
  EstimateTask(Napi::Env env, EngineConfig config) : PromiseTask(env), config_(std::move(config)) {}

 protected:
  std::optional<Failure> Execute() override {
    auto estimate = EstimateMemory(config_);
    if (!estimate) return estimate.failure();
    estimate_ = std::move(estimate.value());
    return std::nullopt;
  }

  void Resolve(Napi::Env env, const Napi::Promise::Deferred& deferred) override {
    Napi::Object object = Napi::Object::New(env);
    object.Set("contextSize", estimate_.context_size);
    object.Set("trainingContext", estimate_.training_context);
    object.Set("layers", estimate_.layers);
    object.Set("sequences", estimate_.sequences);
    Napi::Array devices = Napi::Array::New(env);
    for (const DeviceEstimate& estimate : estimate_.devices) {
      Napi::Object device = MemoryObject(env, estimate.use);
      device.Set("name", estimate.name);
      device.Set("host", estimate.host);
      device.Set("total", static_cast<double>(estimate.total));
      device.Set("free", static_cast<double>(estimate.free));
      devices.Set(devices.Length(), device);
    }
    object.Set("devices", devices);
    deferred.Resolve(object);
  }

 private:
  const EngineConfig config_;
  MemoryEstimate estimate_;
};

}  // namespace

Napi::Object MemoryObject(Napi::Env env, const MemoryUse& memory) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("weights", static_cast<double>(memory.weights));
  object.Set("cache", static_cast<double>(memory.cache));
  object.Set("compute", static_cast<double>(memory.compute));
  object.Set("output", static_cast<double>(memory.output));
  return object;
}

Napi::Value EstimateMemoryCall(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto config = ReadLoadOptions(info[0]);
  if (env.IsExceptionPending()) return env.Undefined();
  if (!config) {
    ToError(env, config.failure()).ThrowAsJavaScriptException();
    return env.Undefined();
  }
  const auto task = std::make_shared<EstimateTask>(env, std::move(config.value()));
  task->StartThread();
  return task->promise();
}

}  // namespace tokenloop
