// A compiled grammar and how far a text has come in it. Pure. Grammar is immutable and shared; a GrammarState is a
// value, used by one thread at a time, and its copies are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "grammar/closure.h"
#include "grammar/gbnf.h"
#include "grammar/program.h"

namespace tokenloop::grammar {

class GrammarState;

class Grammar : public std::enable_shared_from_this<Grammar> {
 public:
  // Null, and `error` set, when the text is refused.
  static std::shared_ptr<const Grammar> Parse(std::string_view text, GbnfError& error, const GbnfLimits& limits = {});

  GrammarState Start() const;
  const Program& program() const { return *program_; }
  size_t bytes() const { return sizeof(*this) + program_->bytes(); }

 private:
  explicit Grammar(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
  std::vector<Thread> start_;
  bool start_can_end_ = false;
};

// Every way to read the text so far, in parallel. Without any way left it is dead, and stays so.
class GrammarState {
 public:
  // False, and the state is dead, when the grammar does not go on with this.
  bool Accept(uint8_t byte);
  bool AcceptBytes(std::string_view bytes);
  // A whole sampled token: as its id (`<[id]>`) or as its text, whichever the grammar takes; both when it takes both. A
  // token without text (a control token) passes no empty bytes: it only counts as its id.
  bool AcceptToken(uint32_t id, std::string_view bytes);

  // The text so far is complete.
  bool CanEnd() const { return can_end_; }
  bool dead() const { return threads_.empty() && !can_end_; }
  // Died because the grammar is too ambiguous to follow, not because the text does not fit.
  bool overflowed() const { return overflowed_; }

  const Grammar& grammar() const { return *grammar_; }
  const std::vector<Thread>& threads() const { return threads_; }
  uint64_t hash() const;
  friend bool operator==(const GrammarState& x, const GrammarState& y) {
    return x.grammar_ == y.grammar_ && x.can_end_ == y.can_end_ && x.threads_ == y.threads_;
  }

 private:
  friend class Grammar;
  GrammarState(std::shared_ptr<const Grammar> grammar, std::vector<Thread> threads, bool can_end)
      : grammar_(std::move(grammar)), threads_(std::move(threads)), can_end_(can_end) {}
  bool Close(Closure& closure);
  bool Step(Closure& closure, uint8_t byte);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Thread> threads_;
  bool can_end_ = false;
  bool overflowed_ = false;
};

// The node after `byte`, or Program::kReturnNode's complement kNoNode.
inline constexpr NodeId kNoNode = UINT32_MAX;
inline NodeId Follow(const Program& program, const Node& node, uint8_t byte) {
  for (uint32_t i = node.a; i < node.b; ++i) {
    const ByteEdge& edge = program.edges[i];
    if (byte < edge.low) break;
    if (byte <= edge.high) return edge.target;
  }
  return kNoNode;
}

}  // namespace tokenloop::grammar
