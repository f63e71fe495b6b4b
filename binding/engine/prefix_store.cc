#include "engine/prefix_store.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tokenloop {
namespace {

std::optional<Failure> CheckSupport(const Cells& cells, const Decoder& decoder) {
  if (!decoder.info().divisible || decoder.info().window > 0) {
    return Failure{"unsupported_model", 400, "",
                   "The prompt cache of a recurrent, hybrid or sliding-window model cannot be saved or restored."};
  }
  if (!cells.keeps()) {
    return Failure{"unsupported_model", 400, "prefixCache", "This engine keeps no prompt cache (prefixCache)."};
  }
  return std::nullopt;
}

// A sequence id for a moment, without a place in the tree.
class Loan {
 public:
  Loan(Cells& cells, Decoder& decoder) : cells_(cells), decoder_(decoder), id_(cells.Borrow()) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() {
    if (!id_) return;
    Clear();
    cells_.Return(*id_);
  }
  explicit operator bool() const { return id_.has_value(); }
  llama_seq_id id() const { return *id_; }
  void Clear() { decoder_.RemoveCells(*id_, 0); }

 private:
  Cells& cells_;
  Decoder& decoder_;
  const std::optional<llama_seq_id> id_;
};

const Failure kNoSequence = {"prefix_too_large", 400, "", "All sequences are in use by running requests."};

}  // namespace

Result<PrefixFile> SavePrefix(Cells& cells, Decoder& decoder, const std::string& key) {
  if (auto failure = CheckSupport(cells, decoder)) return *failure;
  PrefixFile file;
  file.fingerprint = decoder.info().fingerprint;
  const std::vector<PrefixTree::Run> runs = cells.Runs(key);
  if (runs.empty()) return Failure{"prefix_not_found", 404, "key", "No prompt is cached under this key."};
  Loan loan(cells, decoder);
  if (!loan) return kNoSequence;
  for (const PrefixTree::Run& run : runs) {
    PrefixFile::Run saved = {run.parent, run.start, run.ends, run.tokens, {}};
    decoder.CopyCells(run.sequence, loan.id(), run.start, run.start + static_cast<uint32_t>(run.tokens.size()));
    saved.state = decoder.SaveState(loan.id());
    loan.Clear();
    if (saved.state.empty()) return Failure{"out_of_memory", 500, "", "llama.cpp could not copy the state of cells."};
    file.runs.push_back(std::move(saved));
  }
  return file;
}

Result<uint64_t> RestorePrefix(Cells& cells, Decoder& decoder, const std::string& key, const PrefixFile& file) {
  if (auto failure = CheckSupport(cells, decoder)) return *failure;
  uint64_t loaded = 0;
  for (size_t last = 0; last < file.runs.size(); ++last) {
    if (!file.runs[last].ends) continue;
    // The way from the beginning of a prompt to the run that a sequence ended in.
    std::vector<const PrefixFile::Run*> way;
    for (auto at = static_cast<int32_t>(last); at >= 0; at = file.runs[static_cast<size_t>(at)].parent) {
      way.push_back(&file.runs[static_cast<size_t>(at)]);
    }
    std::reverse(way.begin(), way.end());
    std::vector<llama_token> tokens;
    for (const PrefixFile::Run* run : way) tokens.insert(tokens.end(), run->tokens.begin(), run->tokens.end());

    const PrefixTree::Match match = cells.Find(key, tokens);
    if (match.length == tokens.size()) continue;
    const auto missing = static_cast<uint32_t>(tokens.size()) - match.length;
    const auto opened = cells.Open(key, match);
    if (!opened) return kNoSequence;
    // As an active sequence it is not given up for its own sake.
    cells.EvictFor(missing);
    Loan loan(cells, decoder);
    if (!loan || cells.unused() < missing) {
      cells.Free(opened->sequence);
      if (!loan) return kNoSequence;
      return Failure{"prefix_too_large", 400, "", "There are not enough free cells for the prompt cache."};
    }
    for (const PrefixFile::Run* run : way) {
      const uint32_t end = run->start + static_cast<uint32_t>(run->tokens.size());
      if (end <= opened->cached) continue;
      if (!decoder.LoadState(loan.id(), run->state) || decoder.CountCells(loan.id()) != end) {
        loan.Clear();
        cells.Free(opened->sequence);
        return Failure{"prefix_file_foreign", 400, "path",
                       "llama.cpp refuses the prompt cache: it was made with other settings (KV type, attention)."};
      }
      decoder.CopyCells(loan.id(), opened->sequence, std::max(run->start, opened->cached), end);
      loan.Clear();
    }
    cells.Append(opened->sequence, std::span(tokens).subspan(opened->cached));
    loaded += tokens.size() - opened->cached;
    cells.Keep(opened->sequence);
  }
  return loaded;
}

}  // namespace tokenloop
