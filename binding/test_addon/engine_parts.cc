#include "test_addon/engine_parts.h"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "engine/drafter.h"
#include "engine/workers.h"

namespace tokenloop {
namespace {

uint32_t Unsigned(const Napi::Value& value) { return value.As<Napi::Number>().Uint32Value(); }

}  // namespace

Napi::Value MakeDrafter(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto drafter = std::make_shared<Drafter>(Unsigned(info[0]));
  Napi::Object object = Napi::Object::New(env);
  object.Set("draft", Napi::Function::New(env, [drafter](const Napi::CallbackInfo& call) -> Napi::Value {
               const auto tokens = call[0].As<Napi::Int32Array>();
               const auto draft = drafter->Draft(std::span(tokens.Data(), tokens.ElementLength()));
               Napi::Array array = Napi::Array::New(call.Env());
               for (uint32_t i = 0; i < draft.size(); ++i) array.Set(i, static_cast<double>(draft[i]));
               return array;
             }));
  object.Set("confirm", Napi::Function::New(env, [drafter](const Napi::CallbackInfo& call) {
               drafter->Confirm(Unsigned(call[0]), Unsigned(call[1]));
             }));
  return object;
}

Napi::Value RunWorkers(const Napi::CallbackInfo& info) {
  const uint32_t count = Unsigned(info[1]);
  std::vector<std::atomic<uint32_t>> done(count);
  {
    Workers workers(Unsigned(info[0]));
    for (uint32_t round = 0; round < Unsigned(info[2]); ++round) {
      const auto body = [&](size_t index, size_t) { ++done[index]; };
      if (round % 2 == 0) {
        workers.Run(count, body);
      } else {
        workers.Start(count, body);
        workers.Finish();
      }
    }
  }
  Napi::Array array = Napi::Array::New(info.Env());
  for (uint32_t i = 0; i < count; ++i) array.Set(i, static_cast<double>(done[i].load()));
  return array;
}

}  // namespace tokenloop
