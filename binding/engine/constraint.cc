#include "engine/constraint.h"

#include <algorithm>

#include "engine/model.h"

namespace tokenloop {
namespace {

std::shared_ptr<const ConstraintVocabulary> MakeVocabulary(const Model& model) {
  const llama_vocab* vocab = model.vocab();
  const int32_t size = llama_vocab_n_tokens(vocab);
  auto vocabulary = std::make_shared<ConstraintVocabulary>();
  std::vector<std::string> pieces(static_cast<size_t>(size));
  for (llama_token token = 0; token < size; ++token) {
    if (llama_vocab_is_eog(vocab, token)) {
      vocabulary->end_tokens.push_back(token);
    } else if ((llama_vocab_get_attr(vocab, token) & LLAMA_TOKEN_ATTR_UNUSED) == 0) {
      model.AppendPiece(token, pieces[static_cast<size_t>(token)]);
    }
  }
  vocabulary->trie = std::make_shared<const grammar::Vocabulary>(pieces);
  return vocabulary;
}

}  // namespace

Result<std::shared_ptr<const CompiledGrammar>> GrammarCache::Compile(const std::string& text) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == text; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().second;
  }
  grammar::GbnfError error;
  const std::shared_ptr<const grammar::Grammar> grammar = grammar::Grammar::Parse(text, error);
  if (!grammar) {
    return Failure{"invalid_grammar", 400, "grammar",
                   "The grammar is invalid at line " + std::to_string(error.line) + ", column " +
                       std::to_string(error.column) + ": " + error.message};
  }
  if (!vocabulary_) vocabulary_ = MakeVocabulary(model_);
  auto compiled = std::make_shared<CompiledGrammar>();
  compiled->grammar = grammar;
  compiled->masker = std::make_shared<grammar::Masker>(grammar, vocabulary_->trie);
  compiled->vocabulary = vocabulary_;
  entries_.emplace_front(text, compiled);
  // The sizes of maskers grow as they are used, so they are added up anew.
  size_t bytes = 0;
  size_t kept = 0;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++kept) {
    bytes += entry->first.size() + entry->second->grammar->bytes() + entry->second->masker->bytes();
    const bool over = kept > 0 && (bytes > kMostBytes || kept >= kMostEntries);
    entry = over ? entries_.erase(entry, entries_.end()) : std::next(entry);
  }
  return std::shared_ptr<const CompiledGrammar>(std::move(compiled));
}

void Constraint::Prepare() {
  if (prepared_) return;
  bits_.assign(compiled_->vocabulary->trie->words(), 0);
  too_ambiguous_ = !compiled_->masker->Compute(state_, bits_);
  if (state_.CanEnd()) {
    for (const llama_token token : compiled_->vocabulary->end_tokens) {
      bits_[static_cast<size_t>(token) / 64] |= uint64_t{1} << (static_cast<size_t>(token) % 64);
    }
  }
  prepared_ = true;
}

Result<TokenBits> Constraint::Mask() {
  Prepare();
  if (too_ambiguous_) {
    return Failure{"grammar_too_ambiguous", 400, "grammar", "The grammar is too ambiguous to be followed."};
  }
  if (std::all_of(bits_.begin(), bits_.end(), [](uint64_t word) { return word == 0; })) {
    return Failure{"grammar_dead_end", 400, "grammar", "The grammar leaves no token to go on with."};
  }
  return TokenBits(bits_);
}

bool Constraint::Accept(llama_token token, const std::string& bytes) {
  prepared_ = false;
  return state_.AcceptToken(static_cast<uint32_t>(token), bytes);
}

}  // namespace tokenloop
