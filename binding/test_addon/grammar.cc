#include "test_addon/grammar.h"

#include <bit>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/lazy.h"
#include "grammar/mask.h"

namespace tokenloop {

namespace {

using grammar::Grammar;
using grammar::GrammarState;
using grammar::Masker;
using grammar::Vocabulary;

struct VocabularyHandle {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<const std::vector<std::string>> pieces;
};

std::string_view BytesOf(const Napi::Value& value) {
  const auto buffer = value.As<Napi::Buffer<char>>();
  return {buffer.Data(), buffer.Length()};
}

template <typename F>
void Method(Napi::Object object, const char* name, F function) {
  object.Set(name, Napi::Function::New(object.Env(), std::move(function)));
}

GrammarState& StateOf(const Napi::Value& value) {
  return *Napi::Value(value.As<Napi::Object>().Get("handle")).As<Napi::External<GrammarState>>().Data();
}

Napi::Value MakeState(Napi::Env env, GrammarState initial) {
  const auto state = std::make_shared<GrammarState>(std::move(initial));
  Napi::Object object = Napi::Object::New(env);
  // The functions of the object own the state; the handle is good as long as the object is.
  object.Set("handle", Napi::External<GrammarState>::New(env, state.get()));
  Method(object, "accept", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    const auto byte = static_cast<uint8_t>(call[0].As<Napi::Number>().Uint32Value());
    return Napi::Boolean::New(call.Env(), state->Accept(byte));
  });
  Method(object, "acceptBytes", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Boolean::New(call.Env(), state->AcceptBytes(BytesOf(call[0])));
  });
  Method(object, "acceptToken", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    const uint32_t id = call[0].As<Napi::Number>().Uint32Value();
    return Napi::Boolean::New(call.Env(), state->AcceptToken(id, BytesOf(call[1])));
  });
  Method(object, "canEnd", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Boolean::New(call.Env(), state->CanEnd());
  });
  Method(object, "dead", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Boolean::New(call.Env(), state->dead());
  });
  Method(object, "overflowed", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Boolean::New(call.Env(), state->overflowed());
  });
  Method(object, "clone", [state](const Napi::CallbackInfo& call) { return MakeState(call.Env(), *state); });
  Method(object, "equals", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Boolean::New(call.Env(), *state == StateOf(call[0]));
  });
  Method(object, "hash", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::String::New(call.Env(), std::to_string(state->hash()));
  });
  Method(object, "threads", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Number::New(call.Env(), static_cast<double>(state->threads().size()));
  });
  return object;
}

// Little-endian words: bit id % 8 of byte id / 8.
Napi::Value ToBits(Napi::Env env, const std::vector<uint64_t>& words) {
  Napi::Uint8Array bits = Napi::Uint8Array::New(env, words.size() * 8);
  for (size_t i = 0; i < bits.ElementLength(); ++i) bits[i] = static_cast<uint8_t>(words[i / 8] >> (8 * (i % 8)));
  return bits;
}

// The token at `share`, in [0, 1), of those whose bits are set; -1 where none is.
int32_t Pick(const std::vector<uint64_t>& mask, double share) {
  size_t count = 0;
  for (const uint64_t word : mask) count += static_cast<size_t>(std::popcount(word));
  if (count == 0) return -1;
  auto left = static_cast<size_t>(share * static_cast<double>(count));
  size_t at = 0;
  for (; left >= static_cast<size_t>(std::popcount(mask[at])); ++at)
    left -= static_cast<size_t>(std::popcount(mask[at]));
  uint64_t word = mask[at];
  for (; left > 0; --left) word &= word - 1;
  return static_cast<int32_t>(at * 64) + std::countr_zero(word);
}

Napi::Value MakeMasker(Napi::Env env, std::shared_ptr<const Grammar> parsed, const VocabularyHandle& handle) {
  const auto pieces = handle.pieces;
  const auto masker = std::make_shared<Masker>(std::move(parsed), handle.vocabulary);
  Napi::Object object = Napi::Object::New(env);
  Method(object, "mask", [masker](const Napi::CallbackInfo& call) -> Napi::Value {
    std::vector<uint64_t> mask(masker->vocabulary().words());
    const bool whole = masker->Compute(StateOf(call[0]), mask);
    return whole ? ToBits(call.Env(), mask) : call.Env().Null();
  });
  Method(object, "partialMask", [masker](const Napi::CallbackInfo& call) {
    std::vector<uint64_t> mask(masker->vocabulary().words());
    masker->Compute(StateOf(call[0]), mask);
    return ToBits(call.Env(), mask);
  });
  Method(object, "allows", [masker](const Napi::CallbackInfo& call) -> Napi::Value {
    std::vector<uint64_t> mask(masker->vocabulary().words());
    if (!masker->Compute(StateOf(call[0]), mask)) return call.Env().Null();
    const uint32_t id = call[1].As<Napi::Number>().Uint32Value();
    return Napi::Boolean::New(call.Env(), ((mask[id / 64] >> (id % 64)) & 1) != 0);
  });
  Method(object, "pick", [masker](const Napi::CallbackInfo& call) -> Napi::Value {
    std::vector<uint64_t> mask(masker->vocabulary().words());
    if (!masker->Compute(StateOf(call[0]), mask)) return call.Env().Null();
    return Napi::Number::New(call.Env(), Pick(mask, call[1].As<Napi::Number>().DoubleValue()));
  });
  Method(object, "bruteForce", [pieces](const Napi::CallbackInfo& call) {
    std::vector<uint64_t> mask((pieces->size() + 63) / 64);
    for (uint32_t id = 0; id < pieces->size(); ++id) {
      GrammarState state = StateOf(call[0]);
      if (state.AcceptToken(id, (*pieces)[id])) mask[id / 64] |= uint64_t{1} << (id % 64);
    }
    return ToBits(call.Env(), mask);
  });
  Method(object, "time", [masker](const Napi::CallbackInfo& call) -> Napi::Value {
    std::vector<uint64_t> mask(masker->vocabulary().words());
    const GrammarState& state = StateOf(call[0]);
    const auto start = std::chrono::steady_clock::now();
    masker->Compute(state, mask);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    return Napi::Number::New(call.Env(), took.count());
  });
  Method(object, "bytes", [masker](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Number::New(call.Env(), static_cast<double>(masker->bytes()));
  });
  return object;
}

// One request's whole use of a lazy grammar: state and masks in one object.
Napi::Value MakeLazy(const Napi::CallbackInfo& info, std::shared_ptr<const Grammar> parsed) {
  const Napi::Env env = info.Env();
  std::vector<std::string> markers;
  const auto array = info[0].As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) markers.emplace_back(BytesOf(array.Get(i)));
  const auto from = info[1].As<Napi::Boolean>().Value() ? grammar::LazyGrammar::From::kMarker
                                                        : grammar::LazyGrammar::From::kBehindMarker;
  const auto handle =
      Napi::Value(info[2].As<Napi::Object>().Get("handle")).As<Napi::External<VocabularyHandle>>().Data();
  const auto lazy = grammar::LazyGrammar::Create(parsed, markers, from);
  if (!lazy) return env.Null();
  const auto masker = std::make_shared<grammar::LazyMasker>(lazy, std::make_shared<Masker>(parsed, handle->vocabulary));
  const auto state = std::make_shared<grammar::LazyState>(lazy);
  const auto pieces = handle->pieces;
  Napi::Object object = Napi::Object::New(env);
  Method(object, "acceptToken", [state, pieces](const Napi::CallbackInfo& call) -> Napi::Value {
    const uint32_t id = call[0].As<Napi::Number>().Uint32Value();
    return Napi::Boolean::New(call.Env(), state->AcceptToken(id, (*pieces)[id]));
  });
  Method(object, "started", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Boolean::New(call.Env(), state->started());
  });
  Method(object, "canEnd", [state](const Napi::CallbackInfo& call) -> Napi::Value {
    return Napi::Boolean::New(call.Env(), state->CanEnd());
  });
  Method(object, "mask", [state, masker, pieces](const Napi::CallbackInfo& call) -> Napi::Value {
    std::vector<uint64_t> mask((pieces->size() + 63) / 64);
    return masker->Compute(*state, mask) ? ToBits(call.Env(), mask) : call.Env().Null();
  });
  Method(object, "bruteForce", [state, pieces](const Napi::CallbackInfo& call) {
    std::vector<uint64_t> mask((pieces->size() + 63) / 64);
    for (uint32_t id = 0; id < pieces->size(); ++id) {
      grammar::LazyState copy = *state;
      if (copy.AcceptToken(id, (*pieces)[id])) mask[id / 64] |= uint64_t{1} << (id % 64);
    }
    return ToBits(call.Env(), mask);
  });
  return object;
}

}  // namespace

Napi::Value MakeGrammar(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Object object = Napi::Object::New(env);
  grammar::GbnfError error;
  const auto parsed = Grammar::Parse(info[0].As<Napi::String>().Utf8Value(), error);
  if (!parsed) {
    Napi::Object value = Napi::Object::New(env);
    value.Set("message", error.message);
    value.Set("line", error.line);
    value.Set("column", error.column);
    object.Set("error", value);
    return object;
  }
  object.Set("bytes", static_cast<double>(parsed->bytes()));
  Method(object, "start", [parsed](const Napi::CallbackInfo& call) { return MakeState(call.Env(), parsed->Start()); });
  Method(object, "lazy", [parsed](const Napi::CallbackInfo& call) { return MakeLazy(call, parsed); });
  Method(object, "masker", [parsed](const Napi::CallbackInfo& call) {
    const auto handle = Napi::Value(call[0].As<Napi::Object>().Get("handle")).As<Napi::External<VocabularyHandle>>();
    return MakeMasker(call.Env(), parsed, *handle.Data());
  });
  return object;
}

Napi::Value MakeVocabulary(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::string_view bytes = BytesOf(info[0]);
  const auto ends = info[1].As<Napi::Uint32Array>();
  auto handle = std::make_unique<VocabularyHandle>();
  const auto pieces = std::make_shared<std::vector<std::string>>();
  size_t begin = 0;
  for (size_t i = 0; i < ends.ElementLength(); ++i) {
    const size_t end = ends[i];
    pieces->emplace_back(bytes.substr(begin, end - begin));
    begin = end;
  }
  handle->pieces = pieces;
  const auto start = std::chrono::steady_clock::now();
  handle->vocabulary = std::make_shared<const Vocabulary>(*pieces);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  Napi::Object object = Napi::Object::New(env);
  object.Set("nodes", handle->vocabulary->node_count());
  object.Set("bytes", static_cast<double>(handle->vocabulary->bytes()));
  object.Set("milliseconds", took.count());
  object.Set("handle", Napi::External<VocabularyHandle>::New(env, handle.release(),
                                                             [](Napi::Env, VocabularyHandle* owned) { delete owned; }));
  return object;
}

}  // namespace tokenloop
