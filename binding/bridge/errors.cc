#include "bridge/errors.h"

namespace tokenloop {

Napi::Error ToError(Napi::Env env, const Failure& failure) {
  const Napi::Error error = Napi::Error::New(env, failure.message);
  Napi::Object object = error.Value();
  object.Set("code", Napi::String::New(env, failure.code));
  object.Set("status", Napi::Number::New(env, failure.status));
  object.Set("param", failure.param.empty() ? env.Null() : Napi::String::New(env, failure.param).As<Napi::Value>());
  if (failure.retry_after_ms > 0) object.Set("retry_after_ms", Napi::Number::New(env, failure.retry_after_ms));
  return error;
}

}  // namespace tokenloop
