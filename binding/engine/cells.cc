#include "engine/cells.h"

#include <algorithm>

namespace tokenloop {

Cells::Cells(Decoder& decoder, uint32_t cells, uint32_t sequences, bool keeps)
    : decoder_(decoder), total_(cells), keeps_(keeps) {
  for (uint32_t i = sequences; i > 0; --i) free_ids_.push_back(static_cast<llama_seq_id>(i - 1));
}

PrefixTree::Match Cells::Find(const std::string& key, std::span<const llama_token> tokens) const {
  const uint32_t window = decoder_.info().window;
  if (window == 0) return tree_.Find(key, tokens);
  return tree_.Find(key, tokens, [&](llama_seq_id sequence, uint32_t length) {
    const uint32_t first = decoder_.FirstCell(sequence);
    return first == 0 || first + window <= length + 1;
  });
}

std::optional<Cells::Opened> Cells::Open(const std::string& key, const PrefixTree::Match& found) {
  PrefixTree::Match match = found;
  if (free_ids_.empty() && !EvictOldest(match.source)) {
    // The only sequence left to evict is the one to copy from.
    if (!EvictOldest()) return std::nullopt;
    match = {};
  }
  const llama_seq_id sequence = free_ids_.back();
  free_ids_.pop_back();
  if (match.length == 0) {
    tree_.Add(sequence, key);
    return Opened{sequence, 0};
  }
  decoder_.CopyCells(match.source, sequence, 0, match.length);
  tree_.AddShared(sequence, match.source, match.length);
  const auto kept = std::find(kept_.begin(), kept_.end(), match.source);
  if (kept != kept_.end()) {
    kept_.erase(kept);
    // One that holds nothing beyond the shared part is of no more use; any other was used just now.
    if (tree_.Length(match.source) == match.length) {
      Free(match.source);
    } else {
      kept_.push_back(match.source);
    }
  }
  return Opened{sequence, match.length};
}

std::optional<llama_seq_id> Cells::Borrow() {
  if (free_ids_.empty() && !EvictOldest()) return std::nullopt;
  const llama_seq_id sequence = free_ids_.back();
  free_ids_.pop_back();
  return sequence;
}

void Cells::Cut(llama_seq_id sequence) { decoder_.RemoveCells(sequence, tree_.Length(sequence)); }

void Cells::Keep(llama_seq_id sequence) {
  tree_.Keep(sequence);
  kept_.push_back(sequence);
}

void Cells::Free(llama_seq_id sequence) {
  decoder_.RemoveCells(sequence, 0);
  tree_.Remove(sequence);
  free_ids_.push_back(sequence);
}

void Cells::EvictFor(uint32_t cells) {
  while (unused() < cells && EvictOldest()) {
  }
}

bool Cells::EvictOldest(llama_seq_id except) {
  const auto oldest = std::find_if(kept_.begin(), kept_.end(), [&](llama_seq_id kept) { return kept != except; });
  if (oldest == kept_.end()) return false;
  const llama_seq_id sequence = *oldest;
  kept_.erase(oldest);
  Free(sequence);
  ++evictions_;
  return true;
}

}  // namespace tokenloop
