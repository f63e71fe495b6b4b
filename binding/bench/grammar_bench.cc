// What llama.cpp's own grammar sampler costs: its converter's grammar for a schema, then, before each token of a text,
// one pass over the whole vocabulary. A yardstick for test/bench/grammar.mjs.
//
//   tokenloop_grammar_bench MODEL < CASES
//
// Of MODEL only the vocabulary is read. CASES: one JSON object a line, {"schema":..,"tokens":[..]}. Prints one line of
// JSON for each: {"compile_us":..,"masks_us":[..],"error":".."}; `error` is there when the schema or a token was
// refused.
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common.h"
#include "json-schema-to-grammar.h"
#include "json.h"
#include "llama.h"

namespace {

using Clock = std::chrono::steady_clock;
using Sampler = std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)>;

double Microseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

struct Outcome {
  double compile_us = 0;
  std::vector<double> masks_us;
  std::string error;
};

void Measure(const common_json& row, const llama_vocab* vocab, Outcome& outcome) {
  const auto started = Clock::now();
  const std::string grammar = json_schema_to_grammar(row.at("schema"));
  const Sampler sampler(llama_sampler_init_grammar(vocab, grammar.c_str(), "root"), llama_sampler_free);
  outcome.compile_us = Microseconds(started);
  if (!sampler) throw std::runtime_error("the grammar is refused");
  std::vector<llama_token_data> candidates(static_cast<size_t>(llama_vocab_n_tokens(vocab)));
  const common_json& tokens = row.at("tokens");
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto token = static_cast<llama_token>(tokens.at(i).get<int>());
    for (size_t id = 0; id < candidates.size(); ++id) candidates[id] = {static_cast<llama_token>(id), 0.0f, 0.0f};
    llama_token_data_array array = {candidates.data(), candidates.size(), -1, false};
    const auto before = Clock::now();
    llama_sampler_apply(sampler.get(), &array);
    outcome.masks_us.push_back(Microseconds(before));
    llama_sampler_accept(sampler.get(), token);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: tokenloop_grammar_bench MODEL < CASES\n");
    return 1;
  }
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  const std::unique_ptr<llama_model, decltype(&llama_model_free)> model(llama_model_load_from_file(argv[1], params),
                                                                        llama_model_free);
  if (!model) {
    std::fprintf(stderr, "cannot load the model\n");
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    Outcome outcome;
    try {
      Measure(common_json::parse(line), llama_model_get_vocab(model.get()), outcome);
    } catch (const std::exception&) {
      outcome.error = "refused";
    }
    std::printf("{\"compile_us\":%.1f,\"masks_us\":[", outcome.compile_us);
    for (size_t i = 0; i < outcome.masks_us.size(); ++i) std::printf("%s%.1f", i > 0 ? "," : "", outcome.masks_us[i]);
    std::printf("],\"error\":\"%s\"}\n", outcome.error.c_str());
    std::fflush(stdout);
  }
  return 0;
}
