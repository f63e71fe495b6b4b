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
  work_.clear();
  index_.clear();
  seen_.clear();
  reached_bottom_ = false;
  too_many_ = false;
}

void Closure::Add(NodeId node, Stack stack) { Visit(node, 0, std::move(stack)); }

void Closure::AddReturn(Stack stack) { Visit(Program::kReturnNode, 0, std::move(stack)); }

void Closure::Visit(NodeId node, uint32_t fresh, Stack stack) {
  if (too_many_) return;
  if (seen_.size() + work_.size() > kMaxVisits) {
    too_many_ = true;
    return;
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

bool Closure::Finish(std::vector<Thread>& threads) {
  threads.clear();
  while (!work_.empty() && !too_many_) {
    const Item item = std::move(work_.back());
    work_.pop_back();
    const Node& node = program_.nodes[item.node];
    const uint64_t hash = MixHash(MixHash(item.stack.hash(), item.node + 1), item.fresh + 1);
    const auto [first, last] = index_.equal_range(hash);
    const bool known = std::any_of(first, last, [&](const auto& entry) {
      const Item& other = seen_[entry.second];
      return other.node == item.node && other.fresh == item.fresh && other.stack == item.stack;
    });
    if (known) continue;
    index_.emplace(hash, static_cast<uint32_t>(seen_.size()));
    seen_.push_back(item);
    switch (node.kind) {
      case NodeKind::kReturn:
        Return(item);
        break;
      case NodeKind::kMatch:
      case NodeKind::kToken:
      case NodeKind::kNotToken:
        threads.push_back({item.node, item.stack});
        too_many_ = threads.size() > kMaxThreads;
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
      case NodeKind::kJump:
        break;
    }
  }
  if (too_many_) {
    threads.clear();
    return false;
  }
  std::sort(threads.begin(), threads.end(), Before);
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  return true;
}

}  // namespace tokenloop::grammar
