// Reads the fields of an argument object with one line per field, and remembers the first that is wrong. JavaScript
// thread. The façade validates too; this is the second line, for what would trip llama.cpp.
#pragma once

#include <napi.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/types.h"

namespace tokenloop {

// Beyond this a bias only makes infinities of logits. Minus infinity is fine: it bans the token.
constexpr double kMostBias = 1e9;

class Fields {
 public:
  explicit Fields(const Napi::Value& value) {
    if (value.IsObject()) {
      object_ = value.As<Napi::Object>();
    } else {
      Refuse("", "an object");
    }
  }

  const std::optional<Failure>& failure() const { return failure_; }

  double Number(const char* name, double minimum, double maximum) {
    const Napi::Value value = Get(name);
    if (!value.IsEmpty() && value.IsNumber()) {
      const double number = value.As<Napi::Number>().DoubleValue();
      if (number >= minimum && number <= maximum) return number;
    }
    Refuse(name, "a number from " + Text(minimum) + " to " + Text(maximum));
    return minimum;
  }

  int64_t Integer(const char* name, int64_t minimum, int64_t maximum) {
    const double number = Number(name, static_cast<double>(minimum), static_cast<double>(maximum));
    if (std::trunc(number) != number) Refuse(name, "an integer");
    return static_cast<int64_t>(number);
  }

  bool Boolean(const char* name) {
    const Napi::Value value = Get(name);
    if (!value.IsEmpty() && value.IsBoolean()) return value.As<Napi::Boolean>().Value();
    Refuse(name, "a boolean");
    return false;
  }

  std::string String(const char* name) {
    std::optional<std::string> value = OptionalString(name);
    if (!value) Refuse(name, "a string");
    return value.value_or(std::string());
  }

  // Absent or undefined: nullopt.
  std::optional<std::string> OptionalString(const char* name) {
    const Napi::Value value = Get(name);
    if (value.IsEmpty() || value.IsUndefined()) return std::nullopt;
    if (value.IsString()) return value.As<Napi::String>().Utf8Value();
    Refuse(name, "a string");
    return std::string();
  }

  std::vector<std::string> NonEmptyStrings(const char* name) {
    std::vector<std::string> strings;
    const Napi::Value value = Get(name);
    if (value.IsEmpty() || !value.IsArray()) {
      Refuse(name, "an array of strings");
      return strings;
    }
    const auto array = value.As<Napi::Array>();
    for (uint32_t i = 0; i < array.Length(); ++i) {
      const Napi::Value item = array.Get(i);
      if (item.IsEmpty() || !item.IsString() || item.As<Napi::String>().Utf8Value().empty()) {
        Refuse(name, "an array of strings, none empty");
        return strings;
      }
      strings.push_back(item.As<Napi::String>().Utf8Value());
    }
    return strings;
  }

  // Absent or undefined: nullopt. Whether the vocabulary has the ids is the engine's to say.
  std::optional<std::vector<int32_t>> OptionalTokens(const char* name) {
    const Napi::Value value = Get(name);
    if (value.IsEmpty() || value.IsUndefined()) return std::nullopt;
    if (value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_int32_array) {
      const auto array = value.As<Napi::Int32Array>();
      return std::vector<int32_t>(array.Data(), array.Data() + array.ElementLength());
    }
    Refuse(name, "an Int32Array");
    return std::vector<int32_t>();
  }

  // Pairs of token id and bias.
  std::vector<std::pair<int32_t, float>> BiasPairs(const char* name) {
    std::vector<std::pair<int32_t, float>> pairs;
    const Napi::Value value = Get(name);
    const bool typed =
        !value.IsEmpty() && value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_float64_array;
    if (!typed || value.As<Napi::TypedArray>().ElementLength() % 2 != 0) {
      Refuse(name, "a Float64Array of pairs");
      return pairs;
    }
    const auto array = value.As<Napi::Float64Array>();
    for (size_t i = 0; i + 1 < array.ElementLength(); i += 2) {
      const double token = array[i];
      const bool valid = token >= 0 && token <= std::numeric_limits<int32_t>::max() && std::trunc(token) == token;
      if (!valid || std::isnan(array[i + 1]) || array[i + 1] > kMostBias) {
        Refuse(name, "pairs of token id and number");
        return pairs;
      }
      pairs.emplace_back(static_cast<int32_t>(token), static_cast<float>(array[i + 1]));
    }
    return pairs;
  }

  Napi::Value Object(const char* name) { return Get(name); }

  void Refuse(const std::string& name, const std::string& expected) {
    if (failure_) return;
    failure_ = Failure{"invalid_request", 400, name,
                       (name.empty() ? std::string("The argument") : "'" + name + "'") + " must be " + expected + "."};
  }

 private:
  Napi::Value Get(const char* name) { return object_.IsEmpty() ? Napi::Value() : object_.Get(name); }

  static std::string Text(double number) {
    std::string text = std::to_string(number);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }

  Napi::Object object_;
  std::optional<Failure> failure_;
};

}  // namespace tokenloop
