// The JavaScript object NativeEngine (src/native.ts). Its methods are closures over a handle, so a wrong `this` cannot
// reach C++ and there is no constructor to call.
#pragma once

#include <napi.h>

#include <memory>

#include "bridge/environment.h"
#include "bridge/event_channel.h"
#include "engine/engine.h"

namespace tokenloop {

// JavaScript thread. The environment keeps the engine until close().
Napi::Object MakeEngineObject(Napi::Env env, const std::shared_ptr<Engine>& engine,
                              const std::shared_ptr<EventChannel>& channel);

// addon.loadModel(options, onEvents, onProgress). JavaScript thread.
Napi::Value LoadModel(const Napi::CallbackInfo& info);

}  // namespace tokenloop
