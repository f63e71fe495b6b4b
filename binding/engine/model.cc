#include "engine/model.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

#include "build-info.h"
#include "common.h"
#include "engine/context_params.h"
#include "engine/draft_model.h"
#include "engine/estimate.h"
#include "engine/prefix_file.h"
#include "engine/process.h"

namespace tokenloop {
namespace {

// What llama.cpp would answer with an abort or a bare NULL.
std::optional<Failure> CheckFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file(std::u8string(path.begin(), path.end()));
  const auto status = std::filesystem::status(file, error);
  if (error || !std::filesystem::exists(status)) {
    return Failure{"model_not_found", 404, "model", "There is no model file at " + path};
  }
  if (!std::filesystem::is_regular_file(status)) {
    return Failure{"invalid_model", 400, "model", "Not a file: " + path};
  }
  std::ifstream stream(file, std::ios::binary);
  char magic[4] = {};
  if (!stream.read(magic, sizeof magic)) {
    return Failure{"invalid_model", 400, "model", "The model file cannot be read: " + path};
  }
  if (std::memcmp(magic, "GGUF", sizeof magic) != 0) {
    return Failure{"invalid_model", 400, "model", "Not a GGUF file (its first bytes are not \"GGUF\"): " + path};
  }
  return std::nullopt;
}

// ggml's threads wait for each other by spinning: more of them than the machine runs at once stand still for minutes.
std::optional<Failure> CheckThreads(const char* option, uint32_t threads) {
  const uint32_t most = std::thread::hardware_concurrency();
  if (most == 0 || threads <= most) return std::nullopt;
  return Failure{"invalid_option", 400, option,
                 std::string("Invalid option '") + option + "': this machine runs " + std::to_string(most) +
                     " threads at once, not " + std::to_string(threads) + "."};
}

std::string Metadata(const llama_model* model, const char* key) {
  std::vector<char> buffer(1024);
  const int32_t length = llama_model_meta_val_str(model, key, buffer.data(), buffer.size());
  return length > 0 ? std::string(buffer.data()) : std::string();
}

// Tells one model file from another, and llama.cpp's builds. Of a file over 64 MiB 1,024 blocks of 64 KiB, evenly
// spread: models that differ at all differ nearly everywhere.
uint64_t Fingerprint(const std::string& path) {
  const std::filesystem::path file(std::u8string(path.begin(), path.end()));
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(stream.tellg(), 0));
  std::vector<char> block(64 << 10);
  const uint64_t blocks = std::min<uint64_t>(1024, (size + block.size() - 1) / block.size());
  uint64_t hash = HashBytes(llama_commit(), std::strlen(llama_commit()), size);
  for (uint64_t i = 0; i < blocks; ++i) {
    stream.clear();
    stream.seekg(static_cast<std::streamoff>(i * size / blocks));
    stream.read(block.data(), static_cast<std::streamsize>(block.size()));
    hash = HashBytes(block.data(), static_cast<size_t>(stream.gcount()), hash);
  }
  return hash;
}

struct ProgressCall {
  const Model::Progress& progress;
  bool cancelled = false;
};

bool OnProgress(float fraction, void* data) {
  auto* call = static_cast<ProgressCall*>(data);
  if (!call->progress(fraction)) call->cancelled = true;
  return !call->cancelled;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Load(const EngineConfig& config, const Progress& progress) {
  InitialiseProcess();
  const LoggerHold hold;
  const LogCapture log;
  const auto with_log = [&](std::string message) {
    if (!log.text().empty()) message += "\n" + log.text();
    return message;
  };
  ProgressCall call{progress};
  try {
    if (auto failure = CheckFile(config.model)) return *failure;
    if (auto failure = CheckThreads("threads", config.threads)) return *failure;
    if (auto failure = CheckThreads("threadsBatch", config.threads_batch)) return *failure;
    llama_model_params params = ModelParams(config);
    params.progress_callback = OnProgress;
    params.progress_callback_user_data = &call;

    std::unique_ptr<Model> model(new Model);
    model->model_.reset(llama_model_load_from_file(config.model.c_str(), params));
    // The callback's answer is lost on the way out of llama.cpp, so the flag tells a cancelled load from a failed one.
    if (call.cancelled) return Failure{"load_cancelled", 499, "", "The load was cancelled."};
    if (!model->model_) {
      return Failure{"model_load_failed", 500, "model", with_log("llama.cpp could not load " + config.model)};
    }
    if (!llama_model_has_decoder(model->model_.get()) || llama_model_has_encoder(model->model_.get())) {
      return Failure{"invalid_model", 400, "model", "Only decoder models can chat; this one has an encoder."};
    }
    // llama.cpp asserts where such a model is asked for text.
    const std::string architecture = Metadata(model->model_.get(), "general.architecture");
    const bool causal = Metadata(model->model_.get(), (architecture + ".attention.causal").c_str()) != "false";
    if (!causal || llama_vocab_type(model->vocab()) == LLAMA_VOCAB_TYPE_NONE) {
      return Failure{"invalid_model", 400, "model",
                     "This model cannot generate text (an embedding model, or one without a vocabulary)."};
    }
    auto context = model->CreateContext(config);
    if (!context) {
      Failure failure = context.failure();
      failure.message = with_log(failure.message);
      return failure;
    }
    if (!config.draft_model.empty()) {
      if (auto failure = CheckFile(config.draft_model)) {
        failure->param = "draftModel";
        return *failure;
      }
      EngineConfig draft_config = config;
      draft_config.threads = std::max(1u, static_cast<uint32_t>(llama_n_threads(model->context_.get())));
      auto draft = DraftModel::Load(draft_config, model->vocab(), model->info_.context_size, model->pool_.get());
      if (!draft) {
        Failure failure = draft.failure();
        failure.message = with_log(failure.message);
        return failure;
      }
      model->draft_source_ = std::move(draft.value());
    } else if (config.draft_tokens > 0) {
      model->draft_source_ = std::make_unique<NgramDrafts>(config.draft_tokens);
    }
    auto templates = ChatTemplates::Create(model->model_.get(), config.chat_template);
    if (!templates) return templates.failure();
    model->templates_ = std::move(templates.value());
    model->info_.chat_template = model->templates_->source();
    model->info_.memory = log.memory();
    if (!progress(1.0f)) return Failure{"load_cancelled", 499, "", "The load was cancelled."};
    return model;
  } catch (const std::bad_alloc&) {
    return Failure{"out_of_memory", 500, "model", "Not enough memory to load " + config.model};
  } catch (const std::exception& error) {
    return Failure{"model_load_failed", 500, "model", with_log(std::string("llama.cpp: ") + error.what())};
  }
}

Result<bool> Model::CreateContext(const EngineConfig& config) {
  const llama_model* model = model_.get();
  const llama_context_params params = ContextParams(config, model);
  context_.reset(llama_init_from_model(model_.get(), params));
  if (!context_) {
    return Failure{"out_of_memory", 500, "contextSize",
                   "llama.cpp could not create a context of " + std::to_string(params.n_ctx) + " cells"};
  }

  const auto threads = static_cast<uint32_t>(params.n_threads);
  const auto threads_batch = static_cast<uint32_t>(params.n_threads_batch);
  // Without pools of its own, ggml starts its threads anew for every graph.
  ggml_threadpool_params pool_params = ggml_threadpool_params_default(static_cast<int>(threads));
  pool_.reset(ggml_threadpool_new(&pool_params));
  if (threads_batch != threads) {
    ggml_threadpool_params batch_params = ggml_threadpool_params_default(static_cast<int>(threads_batch));
    batch_params.paused = true;
    pool_batch_.reset(ggml_threadpool_new(&batch_params));
  }
  if (pool_) llama_attach_threadpool(context_.get(), pool_.get(), pool_batch_ ? pool_batch_.get() : pool_.get());

  char description[256] = {};
  llama_model_desc(model, description, sizeof description);
  info_.description = description;
  info_.name = Metadata(model, "general.name");
  info_.parameters = llama_model_n_params(model);
  info_.size = llama_model_size(model);
  info_.vocab_size = static_cast<uint32_t>(llama_vocab_n_tokens(vocab()));
  info_.training_context = static_cast<uint32_t>(std::max(0, llama_model_n_ctx_train(model)));
  info_.context_size = llama_n_ctx(context_.get());
  info_.parallel = config.parallel;
  info_.sequences = llama_n_seq_max(context_.get());
  info_.batch_size = llama_n_batch(context_.get());
  info_.micro_batch_size = llama_n_ubatch(context_.get());
  info_.divisible = IsDivisible(model);
  info_.window = static_cast<uint32_t>(std::max(0, llama_model_n_swa(model)));
  info_.fingerprint = Fingerprint(config.model);
  // With every layer on a GPU the CPU's threads have next to nothing to do.
  const bool offloaded =
      llama_supports_gpu_offload() && (config.gpu_layers < 0 || config.gpu_layers > llama_model_n_layer(model));
  info_.threads = offloaded ? 1 : std::max(threads, threads_batch);
  return true;
}

Model::~Model() {
  if (context_ && pool_) llama_detach_threadpool(context_.get());
}

int32_t Model::Decode(const llama_batch& batch) {
  try {
    const int32_t status = llama_decode(context_.get(), batch);
    if (status == 0) llama_synchronize(context_.get());
    return status;
  } catch (const std::exception&) {
    return -3;
  }
}

void Model::CopyCells(llama_seq_id from, llama_seq_id to, uint32_t begin, uint32_t end) {
  llama_memory_seq_cp(llama_get_memory(context_.get()), from, to, static_cast<llama_pos>(begin),
                      static_cast<llama_pos>(end));
}

void Model::RemoveCells(llama_seq_id sequence, uint32_t from) {
  llama_memory_seq_rm(llama_get_memory(context_.get()), sequence, static_cast<llama_pos>(from), -1);
}

uint32_t Model::CountCells(llama_seq_id sequence) {
  return static_cast<uint32_t>(llama_memory_seq_pos_max(llama_get_memory(context_.get()), sequence) + 1);
}

uint32_t Model::FirstCell(llama_seq_id sequence) {
  return static_cast<uint32_t>(std::max(0, llama_memory_seq_pos_min(llama_get_memory(context_.get()), sequence)));
}

std::vector<uint8_t> Model::SaveState(llama_seq_id sequence) {
  std::vector<uint8_t> state(llama_state_seq_get_size(context_.get(), sequence));
  const size_t written = llama_state_seq_get_data(context_.get(), state.data(), state.size(), sequence);
  if (written != state.size()) state.clear();
  return state;
}

bool Model::LoadState(llama_seq_id sequence, std::span<const uint8_t> state) {
  try {
    if (llama_state_seq_set_data(context_.get(), state.data(), state.size(), sequence) == state.size()) return true;
  } catch (const std::exception&) {
    // llama.cpp throws where the first bytes are not its own.
  }
  RemoveCells(sequence, 0);
  return false;
}

std::optional<Failure> Model::CheckTokens(const std::vector<llama_token>& tokens) const {
  const int32_t size = llama_vocab_n_tokens(vocab());
  for (const llama_token token : tokens) {
    if (token >= 0 && token < size) continue;
    return Failure{"invalid_request", 400, "tokens",
                   "Token " + std::to_string(token) + " is not one of the vocabulary's " + std::to_string(size) + "."};
  }
  return std::nullopt;
}

std::vector<llama_token> Model::Tokenize(const std::string& text, bool add_special, bool parse_special) const {
  const auto length = static_cast<int32_t>(text.size());
  // A token stands for at least one byte, save those that the vocabulary adds around the text.
  std::vector<llama_token> tokens(text.size() + 4);
  const int32_t count = llama_tokenize(vocab(), text.data(), length, tokens.data(), static_cast<int32_t>(tokens.size()),
                                       add_special, parse_special);
  if (count >= 0) {
    tokens.resize(static_cast<size_t>(count));
    return tokens;
  }
  tokens.resize(static_cast<size_t>(-static_cast<int64_t>(count)));
  llama_tokenize(vocab(), text.data(), length, tokens.data(), static_cast<int32_t>(tokens.size()), add_special,
                 parse_special);
  return tokens;
}

std::vector<llama_token> Model::TokenizePieces(const std::vector<std::string>& pieces) const {
  if (pieces.size() == 1) return Tokenize(pieces.front(), true, true);
  std::vector<llama_token> tokens;
  if (llama_vocab_get_add_bos(vocab())) tokens.push_back(llama_vocab_bos(vocab()));
  // SentencePiece puts a space before a text; not in the middle of one. A newline never merges with what follows, so
  // the tokens behind it are those of a text that goes on.
  const bool sentence_piece = llama_vocab_type(vocab()) == LLAMA_VOCAB_TYPE_SPM;
  const size_t newline = sentence_piece ? Tokenize("\n", false, true).size() : 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t skip = i > 0 ? newline : 0;
    const std::vector<llama_token> piece = Tokenize(skip > 0 ? "\n" + pieces[i] : pieces[i], false, true);
    tokens.insert(tokens.end(), piece.begin() + static_cast<std::ptrdiff_t>(std::min(skip, piece.size())), piece.end());
  }
  if (llama_vocab_get_add_eos(vocab())) tokens.push_back(llama_vocab_eos(vocab()));
  return tokens;
}

void Model::AppendPiece(llama_token token, std::string& out, bool with_control) const {
  char buffer[256];
  const int32_t length = llama_token_to_piece(vocab(), token, buffer, sizeof buffer, 0, with_control);
  if (length >= 0) {
    out.append(buffer, static_cast<size_t>(length));
    return;
  }
  std::string piece(static_cast<size_t>(-length), '\0');
  llama_token_to_piece(vocab(), token, piece.data(), -length, 0, with_control);
  out += piece;
}

}  // namespace tokenloop
