#include "engine/result_json.h"

#include "nlohmann/json.hpp"
#include "text/utf8.h"

namespace tokenloop {
namespace {

using Json = nlohmann::ordered_json;

double MillisecondsBetween(Clock::time_point from, Clock::time_point to) {
  if (from == Clock::time_point{} || to == Clock::time_point{}) return 0;
  return Milliseconds(to - from);
}

// Messages may quote bytes of a file or a template: whatever is not UTF-8 is replaced, never thrown about.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string ResultJson(const Request& request) {
  const auto now = Clock::now();
  const bool started = request.first_decode != Clock::time_point{};
  const bool answered = request.first_token != Clock::time_point{};
  Json json = {
      {"prompt_tokens", request.prompt_size},
      {"cached_tokens", request.reused},
      {"completion_tokens", request.generated()},
      {"seed", request.sampler ? request.sampler->seed() : 0},
      {"queue_ms", MillisecondsBetween(request.submitted, started ? request.first_decode : now)},
      {"prompt_ms", MillisecondsBetween(request.first_decode, answered ? request.first_token : now)},
      {"predicted_ms", MillisecondsBetween(request.first_token, now)},
  };
  if (request.drafted > 0) {
    json["drafted_tokens"] = request.drafted;
    json["accepted_tokens"] = request.accepted;
  }
  if (request.text && request.text->matched_stop() >= 0) {
    json["stop"] = request.stops[static_cast<size_t>(request.text->matched_stop())];
  }
  return Dump(json);
}

std::string LogprobsJson(const TokenLogprobs& logprobs, const Decoder& decoder) {
  const auto entry = [&](llama_token token, float logprob) {
    std::string bytes;
    decoder.AppendPiece(token, bytes, true);
    Json list = Json::array();
    for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
    // Half a character is shown as U+FFFD; `bytes` has it as it is.
    std::string text;
    Utf8Holder holder;
    holder.Push(bytes, text);
    holder.Finish(text);
    return Json{{"token", text}, {"logprob", logprob}, {"bytes", std::move(list)}};
  };
  Json json = entry(logprobs.token, logprobs.logprob);
  json["top_logprobs"] = Json::array();
  for (const auto& [token, logprob] : logprobs.top) json["top_logprobs"].push_back(entry(token, logprob));
  return Dump(json);
}

std::string FailureJson(const Failure& failure) {
  Json json = {{"code", failure.code}, {"status", failure.status}, {"param", nullptr}, {"message", failure.message}};
  if (!failure.param.empty()) json["param"] = failure.param;
  if (failure.retry_after_ms > 0) json["retry_after_ms"] = failure.retry_after_ms;
  return Dump(json);
}

}  // namespace tokenloop
