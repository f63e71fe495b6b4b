#include "bridge/errors.h"

namespace tokenloop {

Napi::Error ToError(Napi::Env env, const Failure& failure) {
  const Napi::Error error = Napi::Error::New(env, failure.message);
  Napi::Object object = error.Value();
  object.Set("code", Napi::String::New(env, failure.code));
  object.Set("status", Napi::Number::New(env, failure.status));
  object.Set("param", failure.param.empty() ? env.Null() : Napi::String::New(env, failure.param).As<Napi::Value>());
  return error;
}

}  // namespace tokenloop
