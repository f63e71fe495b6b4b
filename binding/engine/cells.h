// The KV cells of an engine and its sequence ids: who holds which, what is kept for reuse, what is given up for others.
// Loop thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decoder.h"
#include "engine/prefix_tree.h"

namespace tokenloop {

class Cells {
 public:
  // `keeps`: whether sequences may stay for reuse after their request.
  Cells(Decoder& decoder, uint32_t cells, uint32_t sequences, bool keeps);

  // The longest prefix of `tokens` that some sequence of this key holds, with all that the next token looks back on.
  PrefixTree::Match Find(const std::string& key, std::span<const llama_token> tokens) const;
  // Of what was found, how many cells only kept sequences hold.
  uint32_t IdleCells(const PrefixTree::Match& match) const {
    return match.length > 0 ? tree_.IdleCells(match.source, match.length) : 0;
  }

  struct Opened {
    llama_seq_id sequence;
    uint32_t cached;  // tokens of the match that it has: all, or 0 where the source had to give up its id
  };
  // A sequence that shares what was found. Where no id is free, the least recently used kept sequence gives up its own.
  // Nothing when all are running.
  std::optional<Opened> Open(const std::string& key, const PrefixTree::Match& match);
  // Cells were filled with these tokens.
  void Append(llama_seq_id sequence, std::span<const llama_token> tokens) { tree_.Append(sequence, tokens); }
  // Takes back cells that were filled beyond what Append was told of.
  void Cut(llama_seq_id sequence);
  // The request is over, or waits; its cells stay until others need them.
  void Keep(llama_seq_id sequence);
  void Free(llama_seq_id sequence);
  // Gives up kept sequences, least recently used first, until so many cells are free or none is left.
  void EvictFor(uint32_t cells);
  bool EvictOldest(llama_seq_id except = -1);

  // Everything that the sequences of a key hold.
  std::vector<PrefixTree::Run> Runs(const std::string& key) const { return tree_.Runs(key); }
  // A sequence id that the caller alone uses and returns without cells. Nothing when all are running.
  std::optional<llama_seq_id> Borrow();
  void Return(llama_seq_id sequence) { free_ids_.push_back(sequence); }

  // Cells that only this sequence holds.
  uint32_t OwnCells(llama_seq_id sequence) const { return tree_.OwnCells(sequence); }
  bool keeps() const { return keeps_; }
  uint32_t total() const { return total_; }
  // Held by running requests.
  uint32_t active() const { return tree_.active_cells(); }
  // Held by nobody.
  uint32_t unused() const { return total_ - tree_.cells(); }
  // Held for reuse only.
  uint32_t kept() const { return tree_.cells() - tree_.active_cells(); }
  uint64_t evictions() const { return evictions_; }

 private:
  Decoder& decoder_;
  const uint32_t total_;
  const bool keeps_;
  PrefixTree tree_;
  std::vector<llama_seq_id> free_ids_;
  std::deque<llama_seq_id> kept_;  // least recently used first
  uint64_t evictions_ = 0;
};

}  // namespace tokenloop
