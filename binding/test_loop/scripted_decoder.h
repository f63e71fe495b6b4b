// A model for tests: the next token is a function of all tokens before it, so that a single wrong cell changes the
// text. It checks what the loop asks of it. Its own thread-safety is that of a model: one thread decodes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/decoder.h"

namespace tokenloop {

// What went wrong, from any thread.
class Violations {
 public:
  void Add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (list_.size() < 20) list_.push_back(what);
  }
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return std::move(list_);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> list_;
};

struct ScriptedOptions {
  uint32_t cells = 256;
  uint32_t parallel = 4;
  uint32_t sequences = 8;
  uint32_t batch_size = 32;
  uint32_t micro_batch_size = 16;
  uint32_t seed = 0;
  uint32_t window = 0;    // as ModelInfo's
  double gives_away = 0;  // probability, for each sequence and micro-batch, that others get cells behind its window
  double no_room = 0;     // probability of status 1 for a batch of several sequences
  double hesitates = 0;   // probability of a pause inside a decode, so that other threads get their turn
};

class ScriptedDecoder : public Decoder {
 public:
  static constexpr uint32_t kVocabulary = 96;
  static constexpr llama_token kEnd = 0;

  ScriptedDecoder(const ScriptedOptions& options, Violations& violations)
      : options_(options),
        violations_(violations),
        random_(options.seed),
        sequences_(options.sequences),
        first_(options.sequences) {
    info_.vocab_size = kVocabulary;
    info_.context_size = options.cells;
    info_.window = options.window;
    info_.parallel = options.parallel;
    info_.sequences = options.sequences;
    info_.batch_size = options.batch_size;
    info_.micro_batch_size = options.micro_batch_size;
  }

  // Bytes of a token: words, halves of characters, and text that stop strings are made of.
  static std::string Piece(llama_token token) {
    static const std::vector<std::string> odd = {"\xC3", "\xA9", "\xF0\x9F", "\x98\x80", "\n",
                                                 "ab",   "ba",   "a",        "b",        ""};
    const auto index = static_cast<size_t>(token - 1);
    if (index < odd.size()) return odd[index];
    return std::string(1, static_cast<char>('c' + token % 24)) + (token % 3 == 0 ? " " : "");
  }

  const ModelInfo& info() const override { return info_; }
  void SetAbortCallback(ggml_abort_callback callback, void* data) override {
    abort_ = callback;
    abort_data_ = data;
  }

  int32_t Decode(const llama_batch& batch) override {
    logits_.clear();
    if (batch.n_tokens <= 0 || static_cast<uint32_t>(batch.n_tokens) > options_.batch_size) {
      violations_.Add("a batch of " + std::to_string(batch.n_tokens) + " tokens");
      return -1;
    }
    bool several = false;
    for (int32_t i = 1; i < batch.n_tokens; ++i) several |= batch.seq_id[i][0] != batch.seq_id[0][0];
    if (several && Chance(options_.no_room)) return 1;
    for (int32_t i = 0; i < batch.n_tokens; ++i) {
      if (i % static_cast<int32_t>(options_.micro_batch_size) == 0) {
        // As llama.cpp's CPU backend does: what was computed before the abort may stay.
        if (abort_ != nullptr && abort_(abort_data_)) return 2;
        if (options_.window > 0) GiveAway();
      }
      if (Chance(options_.hesitates)) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
      auto& cells = At(batch.seq_id[i][0]);
      if (static_cast<size_t>(batch.pos[i]) != cells.size()) {
        violations_.Add("position " + std::to_string(batch.pos[i]) + " after " + std::to_string(cells.size()) +
                        " cells");
      }
      cells.push_back(std::make_shared<Cell>(live_, batch.token[i]));
      if (options_.window > 0 &&
          First(batch.seq_id[i][0]) + options_.window > std::max<size_t>(cells.size(), options_.window)) {
        violations_.Add("position " + std::to_string(batch.pos[i]) + " looks back on cells that others have got");
      }
      if (live_ > options_.cells) violations_.Add(std::to_string(live_) + " cells in use");
      if (batch.logits[i] != 0) logits_[i] = LogitsAfter(cells);
    }
    return 0;
  }

  const float* Logits(int32_t index) override {
    const auto found = logits_.find(index);
    if (found == logits_.end()) violations_.Add("logits of a token that asked for none");
    return found == logits_.end() ? nullptr : found->second.data();
  }

  void CopyCells(llama_seq_id from, llama_seq_id to, uint32_t begin, uint32_t end) override {
    const auto& source = At(from);
    auto& target = At(to);
    if (begin != target.size() || end > source.size()) violations_.Add("a copy that does not fit");
    for (size_t i = begin; i < std::min<size_t>(end, source.size()); ++i) target.push_back(source[i]);
    First(to) = First(from);
  }
  void RemoveCells(llama_seq_id sequence, uint32_t from) override {
    auto& cells = At(sequence);
    if (cells.size() > from) cells.resize(from);
    if (from == 0) First(sequence) = 0;
  }
  uint32_t FirstCell(llama_seq_id sequence) override { return First(sequence); }
  uint32_t CountCells(llama_seq_id sequence) override { return static_cast<uint32_t>(At(sequence).size()); }
  std::vector<uint8_t> SaveState(llama_seq_id sequence) override { return std::vector<uint8_t>(At(sequence).size()); }
  bool LoadState(llama_seq_id, std::span<const uint8_t>) override { return false; }

  bool EndsGeneration(llama_token token) const override { return token == kEnd; }
  void AppendPiece(llama_token token, std::string& out, bool) const override {
    if (token != kEnd) out += Piece(token);
  }

  // Cells that any sequence has.
  uint32_t live() const { return live_; }

 private:
  // Counts itself: shared cells are there once.
  struct Cell {
    Cell(uint32_t& live_cells, llama_token cell_token) : live(live_cells), token(cell_token) { ++live; }
    ~Cell() { --live; }
    Cell(const Cell&) = delete;
    Cell& operator=(const Cell&) = delete;
    uint32_t& live;
    const llama_token token;
  };
  using Cells = std::vector<std::shared_ptr<Cell>>;

  bool Chance(double probability) {
    return probability > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }

  Cells& At(llama_seq_id sequence) {
    if (sequence < 0 || static_cast<size_t>(sequence) >= sequences_.size()) {
      violations_.Add("sequence " + std::to_string(sequence));
      return sequences_.front();
    }
    return sequences_[static_cast<size_t>(sequence)];
  }

  uint32_t& First(llama_seq_id sequence) { return first_[static_cast<size_t>(&At(sequence) - sequences_.data())]; }

  // What llama.cpp does when it looks for room: a cell that one sequence alone holds, and that its next token does not
  // look back on, may go to another; with it go those before it.
  void GiveAway() {
    for (size_t sequence = 0; sequence < sequences_.size(); ++sequence) {
      const Cells& cells = sequences_[sequence];
      if (cells.size() < options_.window || !Chance(options_.gives_away)) continue;
      size_t at = cells.size() - options_.window + 1;
      while (at > first_[sequence] && cells[at - 1].use_count() > 1) --at;
      first_[sequence] = std::max(first_[sequence], static_cast<uint32_t>(at));
    }
  }

  // One token is certain, the others in an order of their own. It repeats itself often enough for guesses to be right.
  static std::vector<float> LogitsAfter(const Cells& cells) {
    uint64_t hash = 14695981039346656037u;
    for (const auto& cell : cells) hash = (hash ^ static_cast<uint64_t>(cell->token)) * 1099511628211u;
    hash ^= hash >> 29;
    std::vector<float> logits(kVocabulary);
    for (uint32_t i = 0; i < kVocabulary; ++i) logits[i] = static_cast<float>((hash >> (i % 32)) % 64) / 64 - 2;
    logits[kEnd] = -9;
    const llama_token last = cells.back()->token;
    const uint64_t kind = hash % 32;
    llama_token next = static_cast<llama_token>(1 + (hash >> 8) % (kVocabulary - 1));
    if (kind == 0) {
      next = kEnd;
    } else if (kind < 24) {
      next = static_cast<llama_token>(1 + static_cast<uint32_t>(last) * 7 % 11);
    }
    logits[static_cast<size_t>(next)] = 9;
    return logits;
  }

  const ScriptedOptions options_;
  Violations& violations_;
  std::minstd_rand random_;
  ModelInfo info_;
  uint32_t live_ = 0;
  std::vector<Cells> sequences_;
  std::vector<uint32_t> first_;  // by sequence: cells before it are gone from the layers with a window
  std::unordered_map<int32_t, std::vector<float>> logits_;
  ggml_abort_callback abort_ = nullptr;
  void* abort_data_ = nullptr;
};

}  // namespace tokenloop
