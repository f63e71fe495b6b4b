#include "grammar/matcher.h"

namespace tokenloop::grammar {

std::shared_ptr<const Grammar> Grammar::Parse(std::string_view text, GbnfError& error, const GbnfLimits& limits) {
  GbnfResult parsed = ParseGbnf(text, limits);
  if (!parsed.program) {
    error = std::move(parsed.error);
    return nullptr;
  }
  const std::shared_ptr<Grammar> grammar(new Grammar(std::move(parsed.program)));
  Closure closure(*grammar->program_);
  closure.Begin();
  closure.Add(grammar->program_->root, Stack());
  if (!closure.Finish(grammar->start_)) {
    error = {"the grammar can begin in too many ways", 1, 1};
    return nullptr;
  }
  grammar->start_can_end_ = closure.reached_bottom();
  return grammar;
}

GrammarState Grammar::Start() const { return GrammarState(shared_from_this(), start_, start_can_end_); }

bool GrammarState::Close(Closure& closure) {
  overflowed_ = !closure.Finish(threads_);
  can_end_ = !overflowed_ && closure.reached_bottom();
  return !dead();
}

bool GrammarState::Step(Closure& closure, uint8_t byte) {
  const Program& program = grammar_->program();
  closure.Begin();
  for (Thread& thread : threads_) {
    const Node& node = program.nodes[thread.node];
    if (node.kind != NodeKind::kMatch) continue;
    const NodeId next = Follow(program, node, byte);
    if (next != kNoNode) closure.Add(next, std::move(thread.stack));
  }
  return Close(closure);
}

bool GrammarState::Accept(uint8_t byte) {
  Closure closure(grammar_->program());
  return Step(closure, byte);
}

bool GrammarState::AcceptBytes(std::string_view bytes) {
  Closure closure(grammar_->program());
  for (const char byte : bytes) {
    if (!Step(closure, static_cast<uint8_t>(byte))) return false;
  }
  return !dead();
}

bool GrammarState::AcceptToken(uint32_t id, std::string_view bytes) {
  const Program& program = grammar_->program();
  std::vector<Thread> whole;  // behind the token
  for (const Thread& thread : threads_) {
    const Node& node = program.nodes[thread.node];
    if ((node.kind == NodeKind::kToken && node.a == id) || (node.kind == NodeKind::kNotToken && node.a != id)) {
      whole.push_back({node.next, thread.stack});
    }
  }
  Closure closure(program);
  if (bytes.empty()) {
    threads_.clear();
    can_end_ = false;
  } else {
    AcceptBytes(bytes);
  }
  if (whole.empty() || overflowed_) return !dead();
  const bool text_can_end = can_end_;
  closure.Begin();
  for (Thread& thread : threads_) closure.Add(thread.node, std::move(thread.stack));
  for (Thread& thread : whole) closure.Add(thread.node, std::move(thread.stack));
  Close(closure);
  can_end_ = can_end_ || (text_can_end && !overflowed_);
  return !dead();
}

uint64_t GrammarState::hash() const {
  uint64_t hash = can_end_ ? 1 : 2;
  for (const Thread& thread : threads_) hash = MixHash(hash, thread.hash());
  return hash;
}

}  // namespace tokenloop::grammar
