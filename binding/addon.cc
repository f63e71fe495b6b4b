// Module registration: called once per environment (the main thread and each worker that loads the addon).
#include <napi.h>

#include <memory>

#include "bridge/engine_object.h"
#include "bridge/environment.h"
#include "bridge/estimate_task.h"
#include "build-info.h"
#include "engine/process.h"
#include "ggml-backend.h"
#include "llama.h"

namespace tokenloop {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

Napi::Value BuildInfo(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  InitialiseProcess();
  Napi::Array devices = Napi::Array::New(env);
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    devices.Set(static_cast<uint32_t>(i), ggml_backend_dev_name(ggml_backend_dev_get(i)));
  }
  Napi::Object object = Napi::Object::New(env);
  object.Set("llamaBuild", llama_build_number());
  object.Set("llamaCommit", llama_commit());
  object.Set("devices", devices);
  object.Set("systemInfo", llama_print_system_info());
  object.Set("sanitized", kSanitized);
  return object;
}

Napi::Object Initialise(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(std::make_unique<Environment>(env).release());  // owned by the environment from here
  exports.Set("buildInfo", Napi::Function::New(env, BuildInfo, "buildInfo"));
  exports.Set("estimateMemory", Napi::Function::New(env, EstimateMemoryCall, "estimateMemory"));
  exports.Set("loadModel", Napi::Function::New(env, LoadModel, "loadModel"));
  return exports;
}

}  // namespace
}  // namespace tokenloop

static Napi::Object Register(Napi::Env env, Napi::Object exports) { return tokenloop::Initialise(env, exports); }

NODE_API_MODULE(tokenloop, Register)
