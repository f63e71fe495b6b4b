// llama.cpp's bare loop on the same batch shapes as ours: N sequences, one prompt each, then greedy decoding in shared
// batches, nothing else. Its tokens per second are what the engine's are divided by. With SCHEMAS, a file with a JSON
// array, it samples as llama.cpp's own server does: stream i under schema i modulo their number, null for none.
//
//   tokenloop_loop_bench MODEL STREAMS PROMPT_TOKENS GENERATED_TOKENS [THREADS [SCHEMAS]]
//
// Prints one line of JSON: {"streams":..,"generated":..,"decode_seconds":..,"tokens_per_second":..}
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common.h"
#include "ggml-cpu.h"
#include "json-schema-to-grammar.h"
#include "json.h"
#include "llama.h"
#include "sampling.h"

namespace {

struct Batch {
  explicit Batch(int32_t size)
      : tokens(size), positions(size), counts(size, 1), sequences(size), pointers(size), outputs(size) {
    for (int32_t i = 0; i < size; ++i) pointers[i] = &sequences[i];
  }
  void Add(llama_token token, llama_pos position, llama_seq_id sequence, bool output) {
    tokens[n] = token;
    positions[n] = position;
    sequences[n] = sequence;
    outputs[n] = output ? 1 : 0;
    ++n;
  }
  llama_batch View() {
    return {n, tokens.data(), nullptr, positions.data(), counts.data(), pointers.data(), outputs.data()};
  }
  int32_t n = 0;
  std::vector<llama_token> tokens;
  std::vector<llama_pos> positions;
  std::vector<int32_t> counts;
  std::vector<llama_seq_id> sequences;
  std::vector<llama_seq_id*> pointers;
  std::vector<int8_t> outputs;
};

llama_token Argmax(const float* logits, int32_t n_vocab) {
  llama_token best = 0;
  for (llama_token i = 1; i < n_vocab; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}

using Samplers = std::vector<common_sampler_ptr>;

// One for each stream; none at all without schemas.
Samplers MakeSamplers(const llama_model* model, const char* path, int32_t streams) {
  Samplers samplers;
  if (path == nullptr) return samplers;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const common_json schemas = common_json::parse(text);
  for (int32_t s = 0; s < streams; ++s) {
    const common_json& schema = schemas.at(static_cast<size_t>(s) % schemas.size());
    common_params_sampling params;
    params.seed = static_cast<uint32_t>(s);
    params.no_perf = true;
    if (!schema.is_null()) params.grammar = {COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT, json_schema_to_grammar(schema)};
    samplers.emplace_back(common_sampler_init(model, params));
    if (!samplers.back()) throw std::runtime_error("llama.cpp does not take the schema's grammar");
  }
  return samplers;
}

int Fail(const char* message) {
  std::fprintf(stderr, "%s\n", message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 5) {
    return Fail("usage: tokenloop_loop_bench MODEL STREAMS PROMPT_TOKENS GENERATED_TOKENS [THREADS [SCHEMAS]]");
  }
  const int32_t streams = std::atoi(argv[2]);
  const int32_t prompt = std::atoi(argv[3]);
  const int32_t generated = std::atoi(argv[4]);
  const int32_t threads = argc > 5 ? std::atoi(argv[5]) : common_cpu_get_num_math();
  if (streams < 1 || prompt < 1 || generated < 1 || threads < 1) return Fail("counts must be positive");

  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  const std::unique_ptr<llama_model, decltype(&llama_model_free)> model(
      llama_model_load_from_file(argv[1], llama_model_default_params()), llama_model_free);
  if (!model) return Fail("cannot load the model");
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(streams * (prompt + generated + 8));
  params.n_batch = 2048;
  params.n_ubatch = 512;
  params.n_seq_max = static_cast<uint32_t>(streams);
  params.kv_unified = true;
  params.n_threads = threads;
  params.n_threads_batch = threads;
  const std::unique_ptr<llama_context, decltype(&llama_free)> context(llama_init_from_model(model.get(), params),
                                                                      llama_free);
  if (!context) return Fail("cannot create the context");
  ggml_threadpool_params pool_params = ggml_threadpool_params_default(threads);
  const std::unique_ptr<ggml_threadpool, decltype(&ggml_threadpool_free)> pool(ggml_threadpool_new(&pool_params),
                                                                               ggml_threadpool_free);
  llama_attach_threadpool(context.get(), pool.get(), pool.get());

  const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
  const Samplers samplers = MakeSamplers(model.get(), argc > 6 ? argv[6] : nullptr, streams);
  // The token behind output `index` of the batch.
  const auto choose = [&](int32_t stream, int32_t index) {
    if (samplers.empty()) return Argmax(llama_get_logits_ith(context.get(), index), n_vocab);
    common_sampler* sampler = samplers[static_cast<size_t>(stream)].get();
    const llama_token token = common_sampler_sample(sampler, context.get(), index);
    common_sampler_accept(sampler, token, true);
    return token;
  };
  Batch batch(2048);
  std::vector<llama_token> next(streams);
  for (int32_t s = 0; s < streams; ++s) {
    batch.n = 0;
    for (int32_t i = 0; i < prompt; ++i) batch.Add((100 + 7 * i + s) % n_vocab, i, s, i + 1 == prompt);
    if (llama_decode(context.get(), batch.View()) != 0) return Fail("llama_decode failed on a prompt");
    next[s] = choose(s, prompt - 1);
  }

  const auto started = std::chrono::steady_clock::now();
  for (int32_t step = 1; step < generated; ++step) {
    batch.n = 0;
    for (int32_t s = 0; s < streams; ++s) batch.Add(next[s], prompt + step - 1, s, true);
    if (llama_decode(context.get(), batch.View()) != 0) return Fail("llama_decode failed");
    for (int32_t s = 0; s < streams; ++s) next[s] = choose(s, s);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const int32_t decoded = streams * (generated - 1);
  std::printf("{\"streams\":%d,\"generated\":%d,\"decode_seconds\":%.6f,\"tokens_per_second\":%.3f}\n", streams,
              decoded, seconds, decoded / seconds);
  llama_detach_threadpool(context.get());
  return 0;
} catch (const std::exception& error) {
  return Fail(error.what());
}
