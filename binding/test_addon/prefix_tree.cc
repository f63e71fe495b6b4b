#include "test_addon/prefix_tree.h"

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engine/prefix_tree.h"

namespace tokenloop {
namespace {

int32_t Integer(const Napi::Value& value) { return value.As<Napi::Number>().Int32Value(); }
uint32_t Unsigned(const Napi::Value& value) { return value.As<Napi::Number>().Uint32Value(); }
std::string Text(const Napi::Value& value) { return value.As<Napi::String>().Utf8Value(); }

std::span<const int32_t> Tokens(const Napi::Value& value) {
  const auto array = value.As<Napi::Int32Array>();
  return {array.Data(), array.ElementLength()};
}

}  // namespace

Napi::Value MakePrefixTree(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto tree = std::make_shared<PrefixTree>();
  Napi::Object object = Napi::Object::New(env);
  using Method = std::function<Napi::Value(PrefixTree&, const Napi::CallbackInfo&)>;
  const auto method = [&](const char* name, Method body) {
    object.Set(name, Napi::Function::New(env, [tree, body](const Napi::CallbackInfo& call) -> Napi::Value {
                 return body(*tree, call);
               }));
  };
  const auto number = [](const Napi::CallbackInfo& call, double value) { return Napi::Number::New(call.Env(), value); };
  method("add", [](PrefixTree& t, const Napi::CallbackInfo& call) {
    t.Add(Integer(call[0]), Text(call[1]));
    return call.Env().Undefined();
  });
  method("addShared", [](PrefixTree& t, const Napi::CallbackInfo& call) {
    t.AddShared(Integer(call[0]), Integer(call[1]), Unsigned(call[2]));
    return call.Env().Undefined();
  });
  method("append", [](PrefixTree& t, const Napi::CallbackInfo& call) {
    t.Append(Integer(call[0]), Tokens(call[1]));
    return call.Env().Undefined();
  });
  method("keep", [](PrefixTree& t, const Napi::CallbackInfo& call) {
    t.Keep(Integer(call[0]));
    return call.Env().Undefined();
  });
  method("remove", [](PrefixTree& t, const Napi::CallbackInfo& call) {
    t.Remove(Integer(call[0]));
    return call.Env().Undefined();
  });
  method("find", [](PrefixTree& t, const Napi::CallbackInfo& call) -> Napi::Value {
    const PrefixTree::Match match = t.Find(Text(call[0]), Tokens(call[1]));
    Napi::Object result = Napi::Object::New(call.Env());
    result.Set("length", match.length);
    result.Set("source", match.source);
    return result;
  });
  method("length", [number](PrefixTree& t, const Napi::CallbackInfo& call) -> Napi::Value {
    return number(call, t.Length(Integer(call[0])));
  });
  method("ownCells", [number](PrefixTree& t, const Napi::CallbackInfo& call) -> Napi::Value {
    return number(call, t.OwnCells(Integer(call[0])));
  });
  method("idleCells", [number](PrefixTree& t, const Napi::CallbackInfo& call) -> Napi::Value {
    return number(call, t.IdleCells(Integer(call[0]), Unsigned(call[1])));
  });
  method("counts", [](PrefixTree& t, const Napi::CallbackInfo& call) -> Napi::Value {
    Napi::Object result = Napi::Object::New(call.Env());
    result.Set("cells", t.cells());
    result.Set("active", t.active_cells());
    return result;
  });
  return object;
}

}  // namespace tokenloop
