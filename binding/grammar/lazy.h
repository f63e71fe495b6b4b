// A grammar that begins at a marker: free text first, then, from the first marker on, what the grammar says. Pure.
// LazyGrammar is immutable and shared; a LazyState is a value, used by one thread at a time; a LazyMasker serves all
// requests with one LazyGrammar, from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/mask.h"
#include "grammar/matcher.h"
#include "text/aho_corasick.h"

namespace tokenloop::grammar {

class LazyGrammar {
 public:
  // What the grammar's text begins with.
  enum class From { kMarker, kBehindMarker };

  // Null when a marker is empty, there is none, or (From::kMarker) the grammar does not begin with one of them.
  static std::shared_ptr<const LazyGrammar> Create(std::shared_ptr<const Grammar> grammar,
                                                   const std::vector<std::string>& markers, From from);

  const Grammar& grammar() const { return *grammar_; }
  const AhoCorasick& markers() const { return automaton_; }
  // The state behind a marker.
  const GrammarState& behind(int32_t marker) const { return behind_[static_cast<size_t>(marker)]; }
  // Bytes that a marker ends with.
  const std::string& last_bytes() const { return last_bytes_; }

 private:
  LazyGrammar(std::shared_ptr<const Grammar> grammar, const std::vector<std::string>& markers)
      : grammar_(std::move(grammar)), automaton_(markers) {}

  std::shared_ptr<const Grammar> grammar_;
  AhoCorasick automaton_;
  std::vector<GrammarState> behind_;
  std::string last_bytes_;
};

class LazyState {
 public:
  explicit LazyState(std::shared_ptr<const LazyGrammar> lazy) : lazy_(std::move(lazy)) {}

  // False when a marker was found, in this text or before, and the grammar does not go on with what follows it.
  bool AcceptBytes(std::string_view bytes);
  bool AcceptToken(uint32_t id, std::string_view bytes);
  // Free text may end anywhere.
  bool CanEnd() const { return !state_ || state_->CanEnd(); }
  // A marker was found. Of several that are complete at the same byte, the longest counts.
  bool started() const { return state_.has_value(); }
  const GrammarState& state() const { return *state_; }
  AhoCorasick::Node node() const { return node_; }

 private:
  std::shared_ptr<const LazyGrammar> lazy_;
  AhoCorasick::Node node_ = AhoCorasick::kRoot;
  std::optional<GrammarState> state_;
};

class LazyMasker {
 public:
  LazyMasker(std::shared_ptr<const LazyGrammar> lazy, std::shared_ptr<Masker> masker)
      : lazy_(std::move(lazy)), masker_(std::move(masker)) {}

  // As Masker::Compute. In free text all tokens are allowed, control tokens too, but those in which a marker ends and
  // something follows that the grammar does not take.
  bool Compute(const LazyState& state, std::span<uint64_t> mask);

 private:
  struct End {
    uint32_t node;  // of the vocabulary
    int32_t marker;
  };
  const std::vector<End>& EndsFrom(AhoCorasick::Node node);

  const std::shared_ptr<const LazyGrammar> lazy_;
  const std::shared_ptr<Masker> masker_;
  std::mutex mutex_;
  // Where markers end within tokens, by what of a marker stands before the token. As many as the markers have bytes.
  std::unordered_map<AhoCorasick::Node, std::vector<End>> ends_;
};

}  // namespace tokenloop::grammar
