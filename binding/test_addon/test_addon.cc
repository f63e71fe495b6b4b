// tokenloop_test.node: the pure parts, for unit tests in the one test runner. Never published. Arguments are trusted.
#include <napi.h>

#include <memory>
#include <string>
#include <vector>

#include "test_addon/engine_parts.h"
#include "test_addon/grammar.h"
#include "test_addon/with_llama.h"

#include "chat/control_text.h"
#include "engine/scheduler.h"
#include "test_addon/prefix_tree.h"
#include "text/output_text.h"
#include "text/stop_matcher.h"
#include "text/utf8.h"

namespace tokenloop {
namespace {

std::string Bytes(const Napi::Value& value) {
  const auto buffer = value.As<Napi::Buffer<char>>();
  return std::string(buffer.Data(), buffer.Length());
}

Napi::Value ToBuffer(Napi::Env env, const std::string& bytes) {
  return Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
}

std::vector<std::string> Strings(const Napi::Value& value) {
  const auto array = value.As<Napi::Array>();
  std::vector<std::string> strings;
  for (uint32_t i = 0; i < array.Length(); ++i)
    strings.push_back(Napi::Value(array.Get(i)).As<Napi::String>().Utf8Value());
  return strings;
}

uint32_t Unsigned(const Napi::Object& object, const char* name) {
  return Napi::Value(object.Get(name)).As<Napi::Number>().Uint32Value();
}

// utf8Holder() -> { push(Buffer): Buffer, finish(): Buffer, held(): number }
Napi::Value MakeUtf8Holder(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto holder = std::make_shared<Utf8Holder>();
  Napi::Object object = Napi::Object::New(env);
  object.Set("push", Napi::Function::New(env, [holder](const Napi::CallbackInfo& call) {
               std::string out;
               holder->Push(Bytes(call[0]), out);
               return ToBuffer(call.Env(), out);
             }));
  object.Set("finish", Napi::Function::New(env, [holder](const Napi::CallbackInfo& call) {
               std::string out;
               holder->Finish(out);
               return ToBuffer(call.Env(), out);
             }));
  object.Set("held", Napi::Function::New(env, [holder](const Napi::CallbackInfo& call) -> Napi::Value {
               return Napi::Number::New(call.Env(), static_cast<double>(holder->held()));
             }));
  return object;
}

// outputText(stops: string[]) -> { push(Buffer): { text: Buffer, stopped: boolean }, finish(): ..., matched(): number }
Napi::Value MakeOutputText(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto output = std::make_shared<OutputText>(Strings(info[0]));
  const auto result = [](Napi::Env call_env, const std::string& text, bool stopped) {
    Napi::Object value = Napi::Object::New(call_env);
    value.Set("text", ToBuffer(call_env, text));
    value.Set("stopped", Napi::Boolean::New(call_env, stopped));
    return value;
  };
  Napi::Object object = Napi::Object::New(env);
  object.Set("push", Napi::Function::New(env, [output, result](const Napi::CallbackInfo& call) {
               std::string text;
               const bool stopped = output->Push(Bytes(call[0]), text);
               return result(call.Env(), text, stopped);
             }));
  object.Set("finish", Napi::Function::New(env, [output, result](const Napi::CallbackInfo& call) {
               std::string text;
               const bool stopped = output->Finish(text);
               return result(call.Env(), text, stopped);
             }));
  object.Set("matched", Napi::Function::New(env, [output](const Napi::CallbackInfo& call) -> Napi::Value {
               return Napi::Number::New(call.Env(), output->matched_stop());
             }));
  return object;
}

// planStep(sequences: { pending, cells, decoding, priority, arrival, paused, drafts }[],
//          { batchSize, promptBudget, aloneBudget, freeCells })
//   -> { shares: [index, tokens][], preempted: number[] }
Napi::Value Plan(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto array = info[0].As<Napi::Array>();
  std::vector<SequenceView> views;
  for (uint32_t i = 0; i < array.Length(); ++i) {
    const auto view = Napi::Value(array.Get(i)).As<Napi::Object>();
    views.push_back({Unsigned(view, "pending"), Unsigned(view, "cells"),
                     Napi::Value(view.Get("decoding")).As<Napi::Boolean>().Value(),
                     Napi::Value(view.Get("priority")).As<Napi::Number>().Int32Value(), Unsigned(view, "arrival"),
                     Napi::Value(view.Get("paused")).As<Napi::Boolean>().Value(), Unsigned(view, "drafts")});
  }
  const auto limits = info[1].As<Napi::Object>();
  const StepPlan plan = PlanStep(views, {Unsigned(limits, "batchSize"), Unsigned(limits, "promptBudget"),
                                         Unsigned(limits, "aloneBudget"), Unsigned(limits, "freeCells")});
  Napi::Array shares = Napi::Array::New(env);
  for (const StepPlan::Share& share : plan.shares) {
    Napi::Array pair = Napi::Array::New(env);
    pair.Set(uint32_t{0}, static_cast<double>(share.index));
    pair.Set(uint32_t{1}, static_cast<double>(share.tokens));
    shares.Set(shares.Length(), pair);
  }
  Napi::Array preempted = Napi::Array::New(env);
  for (const size_t index : plan.preempted) preempted.Set(preempted.Length(), static_cast<double>(index));
  Napi::Object object = Napi::Object::New(env);
  object.Set("shares", shares);
  object.Set("preempted", preempted);
  return object;
}

// promptBudget(targetMs) -> { observe(promptTokens, decoding, ms), tokens(decoding): number }
Napi::Value MakePromptBudget(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto budget = std::make_shared<PromptBudget>(info[0].As<Napi::Number>().DoubleValue());
  Napi::Object object = Napi::Object::New(env);
  object.Set("observe", Napi::Function::New(env, [budget](const Napi::CallbackInfo& call) {
               budget->Observe(call[0].As<Napi::Number>().Uint32Value(), call[1].As<Napi::Number>().Uint32Value(),
                               call[2].As<Napi::Number>().DoubleValue());
             }));
  object.Set("tokens", Napi::Function::New(env, [budget](const Napi::CallbackInfo& call) -> Napi::Value {
               return Napi::Number::New(call.Env(), budget->Tokens(call[0].As<Napi::Number>().Uint32Value()));
             }));
  return object;
}

// controlText(controlTexts: string[]) -> { mark(string): string }; splitMarked(string): string[]
Napi::Value MakeControlText(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto control = std::make_shared<ControlText>(Strings(info[0]));
  Napi::Object object = Napi::Object::New(env);
  object.Set("mark", Napi::Function::New(env, [control](const Napi::CallbackInfo& call) -> Napi::Value {
               return Napi::String::New(call.Env(), control->Mark(call[0].As<Napi::String>().Utf8Value()));
             }));
  return object;
}

Napi::Value SplitMarked(const Napi::CallbackInfo& info) {
  Napi::Array pieces = Napi::Array::New(info.Env());
  for (const std::string& piece : ControlText::Split(info[0].As<Napi::String>().Utf8Value())) {
    pieces.Set(pieces.Length(), Napi::String::New(info.Env(), piece));
  }
  return pieces;
}

}  // namespace
}  // namespace tokenloop

static Napi::Object Register(Napi::Env env, Napi::Object exports) {
  exports.Set("utf8Holder", Napi::Function::New(env, tokenloop::MakeUtf8Holder));
  exports.Set("outputText", Napi::Function::New(env, tokenloop::MakeOutputText));
  exports.Set("planStep", Napi::Function::New(env, tokenloop::Plan));
  exports.Set("promptBudget", Napi::Function::New(env, tokenloop::MakePromptBudget));
  exports.Set("controlText", Napi::Function::New(env, tokenloop::MakeControlText));
  exports.Set("drafter", Napi::Function::New(env, tokenloop::MakeDrafter));
  exports.Set("workers", Napi::Function::New(env, tokenloop::RunWorkers));
  exports.Set("prefixTree", Napi::Function::New(env, tokenloop::MakePrefixTree));
  exports.Set("logSumExp", Napi::Function::New(env, tokenloop::LogSumExpOf));
  exports.Set("firstOfLargest", Napi::Function::New(env, tokenloop::FirstOfLargestOf));
  exports.Set("selectLargest", Napi::Function::New(env, tokenloop::SelectLargestOf));
  exports.Set("llamaSamplingDefaults", Napi::Function::New(env, tokenloop::LlamaSamplingDefaults));
  exports.Set("grammar", Napi::Function::New(env, tokenloop::MakeGrammar));
  exports.Set("grammarVocabulary", Napi::Function::New(env, tokenloop::MakeVocabulary));
  exports.Set("splitMarked", Napi::Function::New(env, tokenloop::SplitMarked));
  return exports;
}

NODE_API_MODULE(tokenloop_test, Register)
