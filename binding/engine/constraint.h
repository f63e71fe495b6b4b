// Grammars in the engine: compiled on the prompt thread, applied on the loop thread.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/types.h"
#include "grammar/mask.h"
#include "llama.h"
#include "sampling/largest.h"

namespace tokenloop {

class Model;

// What a model's vocabulary is to grammars: its tokens' bytes as a trie, and the tokens that end generation.
struct ConstraintVocabulary {
  std::shared_ptr<const grammar::Vocabulary> trie;
  std::vector<llama_token> end_tokens;
};

// A compiled grammar over a vocabulary, shared by all answers that follow it.
struct CompiledGrammar {
  std::shared_ptr<const grammar::Grammar> grammar;
  std::shared_ptr<grammar::Masker> masker;
  std::shared_ptr<const ConstraintVocabulary> vocabulary;
};

// The grammars of one engine, the most recently used ones kept. Prompt thread only.
class GrammarCache {
 public:
  explicit GrammarCache(const Model& model) : model_(model) {}

  // `text` is GBNF. Fails with code "invalid_grammar" (400, param "grammar"), naming line and column. The first call
  // builds the vocabulary's trie: about 0.1 s for 152k tokens.
  Result<std::shared_ptr<const CompiledGrammar>> Compile(const std::string& text);

 private:
  static constexpr size_t kMostBytes = size_t{64} << 20;
  static constexpr size_t kMostEntries = 64;
  using Entry = std::pair<std::string, std::shared_ptr<const CompiledGrammar>>;

  const Model& model_;
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;
  std::list<Entry> entries_;  // most recently used first
};

// How far one answer has come in its grammar. Used by one thread at a time: the loop's, or a helper of its sampling.
class Constraint {
 public:
  explicit Constraint(std::shared_ptr<const CompiledGrammar> compiled)
      : compiled_(std::move(compiled)), state_(compiled_->grammar->Start()) {}

  // Computes the mask for the next token; without effect when that is done. Mask() does it where nobody did before.
  void Prepare();
  // The tokens that the grammar allows , good until Accept(); tokens that end generation
  // are allowed exactly where the grammar may end. Fails with code "grammar_dead_end" when no token is left, and with
  // "grammar_too_ambiguous" when the grammar cannot be followed in bounded time (both 400, param "grammar").
  Result<TokenBits> Mask();
  // A token that Mask allowed, and the bytes it stands for. False when the grammar is too ambiguous to be followed.
  bool Accept(llama_token token, const std::string& bytes);
  // The grammar may end here, and nothing can follow.
  bool Complete() const { return state_.CanEnd() && state_.threads().empty(); }

 private:
  const std::shared_ptr<const CompiledGrammar> compiled_;
  grammar::GrammarState state_;
  std::vector<uint64_t> bits_;
  bool prepared_ = false;
  bool too_ambiguous_ = false;
};

}  // namespace tokenloop
