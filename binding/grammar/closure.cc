#include "grammar/closure.h"

#include <algorithm>

namespace tokenloop::grammar {

Stack Stack::Push(NodeId point, uint32_t count) const {
  Take(top_);
  const uint64_t hash = MixHash(MixHash(this->hash(), point + 1), count + 1);
  return Stack(new Frame{{1}, point, count, hash, top_});
}

void Stack::Drop(const Frame* frame) {
  while (frame != nullptr && frame->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    const Frame* parent = frame->parent;
    delete frame;
    frame = parent;
  }
}

bool operator==(const Stack& x, const Stack& y) {
  if (x.hash() != y.hash()) return false;
  const Stack::Frame* left = x.top_;
  const Stack::Frame* right = y.top_;
  while (left != right) {
    if (left == nullptr || right == nullptr || left->point != right->point || left->count != right->count) return false;
    left = left->parent;
    right = right->parent;
  }
  return true;
}

namespace {

// An order that does not depend on addresses, so that equal sets are equal whatever thread made them.
bool Before(const Thread& x, const Thread& y) {
  if (x.node != y.node) return x.node < y.node;
  if (x.stack.hash() != y.stack.hash()) return x.stack.hash() < y.stack.hash();
  const Stack::Frame* left = x.stack.frame();
  const Stack::Frame* right = y.stack.frame();
  while (left != right) {
    if (left == nullptr || right == nullptr) return left == nullptr;
    if (left->point != right->point) return left->point < right->point;
    if (left->count != right->count) return left->count < right->count;
    left = left->parent;
    right = right->parent;
  }
  return false;
}

}  // namespace

void Closure::Begin() {
  waiting_.clear();
  work_.clear();
  seen_.clear();
  table_.assign(64, 0);
  reached_bottom_ = false;
  too_many_ = false;
}

void Closure::Add(NodeId node, Stack stack) { Visit(node, 0, std::move(stack)); }

void Closure::AddReturn(Stack stack) { Visit(Program::kReturnNode, 0, std::move(stack)); }

void Closure::Visit(NodeId node, uint32_t fresh, Stack stack) {
  if (too_many_) return;
  if (seen_.size() + work_.size() + waiting_.size() > kMaxVisits) {
    too_many_ = true;
    return;
  }
  switch (program_.nodes[node].kind) {
    case NodeKind::kMatch:
    case NodeKind::kToken:
    case NodeKind::kNotToken:
      waiting_.push_back({node, std::move(stack)});
      return;
    default:
      break;
  }
  work_.push_back({node, fresh, std::move(stack)});
}

// A turn that read nothing leads nowhere new: its repetition could be left before it began.
void Closure::Return(const Item& item) {
  if (item.stack.empty()) {
    reached_bottom_ = true;
    return;
  }
  const Stack::Frame& frame = item.stack.top();
  const uint32_t fresh = item.fresh > 0 ? item.fresh - 1 : 0;
  if (frame.count == Stack::kCall) {
    Visit(frame.point, fresh, item.stack.Pop());
    return;
  }
  if (item.fresh > 0) return;
  const Node& point = program_.nodes[frame.point];
  if (frame.count == Stack::kFarBelow || frame.count == Stack::kFarWithin) {
    if (frame.count == Stack::kFarWithin) Visit(point.next, 0, item.stack.Pop());
    Visit(point.a, 1, item.stack);
    return;
  }
  const bool bounded = point.max != Node::kUnbounded;
  const uint32_t turns = frame.count + 1;
  if (turns >= point.min) Visit(point.next, 0, item.stack.Pop());
  if (!bounded || turns < point.max) {
    Visit(point.a, 1, item.stack.Pop().Push(frame.point, bounded ? turns : std::min(turns, point.min)));
  }
}

// Remembers the item, unless it is remembered.
bool Closure::Known(const Item& item) {
  const auto slot = [this](const Item& key) {
    return MixHash(MixHash(key.stack.hash(), key.node + 1), key.fresh + 1) & (table_.size() - 1);
  };
  const auto free = [&](const Item& key) {
    size_t at = slot(key);
    while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
    return at;
  };
  for (size_t at = slot(item); table_[at] != 0; at = (at + 1) & (table_.size() - 1)) {
    const Item& other = seen_[table_[at] - 1];
    if (other.node == item.node && other.fresh == item.fresh && other.stack == item.stack) return true;
  }
  if (2 * seen_.size() >= table_.size()) {
    table_.assign(4 * table_.size(), 0);
    for (size_t i = 0; i < seen_.size(); ++i) table_[free(seen_[i])] = static_cast<uint32_t>(i + 1);
  }
  table_[free(item)] = static_cast<uint32_t>(seen_.size() + 1);
  seen_.push_back(item);
  return false;
}

bool Closure::Finish(std::vector<Thread>& threads) {
  threads.clear();
  while (!work_.empty() && !too_many_) {
    const Item item = std::move(work_.back());
    work_.pop_back();
    if (Known(item)) continue;
    const Node& node = program_.nodes[item.node];
    switch (node.kind) {
      case NodeKind::kReturn:
        Return(item);
        break;
      case NodeKind::kSplit:
        for (uint32_t i = node.a; i < node.b; ++i) Visit(program_.targets[i], item.fresh, item.stack);
        break;
      case NodeKind::kCall:
        // The last call of a rule needs no frame: stacks do not grow along `list ::= item list`.
        if (node.next == Program::kReturnNode) {
          Visit(node.a, item.fresh, item.stack);
        } else {
          Visit(node.a, item.fresh + 1, item.stack.Push(node.next, Stack::kCall));
        }
        break;
      case NodeKind::kLoop:
        if (node.min == 0) Visit(node.next, item.fresh, item.stack);
        Visit(node.a, item.fresh + 1, item.stack.Push(item.node, 0));
        break;
      default:
        break;
    }
  }
  if (!too_many_) {
    std::sort(waiting_.begin(), waiting_.end(), Before);
    waiting_.erase(std::unique(waiting_.begin(), waiting_.end()), waiting_.end());
    too_many_ = waiting_.size() > kMaxThreads;
  }
  if (too_many_) return false;
  threads.swap(waiting_);
  return true;
}

}  // namespace tokenloop::grammar
