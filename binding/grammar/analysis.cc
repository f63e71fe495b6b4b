#include "grammar/analysis.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tokenloop::grammar {

namespace {

constexpr NodeId kNone = UINT32_MAX;

// For every node: can it reach its return without reading anything?
std::vector<bool> FindNullable(const Program& program) {
  const size_t count = program.nodes.size();
  // users[begin[n], begin[n + 1]): the nodes whose answer may change with n's.
  std::vector<std::pair<NodeId, NodeId>> uses;
  for (NodeId id = 0; id < count; ++id) {
    const Node& node = program.nodes[id];
    if (node.kind == NodeKind::kSplit) {
      for (uint32_t i = node.a; i < node.b; ++i) uses.emplace_back(program.targets[i], id);
    } else if (node.kind == NodeKind::kCall || node.kind == NodeKind::kLoop) {
      uses.emplace_back(node.a, id);
      uses.emplace_back(node.next, id);
    }
  }
  std::vector<uint32_t> begin(count + 1, 0);
  for (const auto& [used, user] : uses) ++begin[used + 1];
  for (size_t i = 1; i <= count; ++i) begin[i] += begin[i - 1];
  std::vector<NodeId> users(uses.size());
  std::vector<uint32_t> fill(begin.begin(), begin.end() - 1);
  for (const auto& [used, user] : uses) users[fill[used]++] = user;

  std::vector<bool> nullable(count, false);
  std::vector<NodeId> work;
  const auto settle = [&](NodeId id) {
    if (nullable[id]) return;
    const Node& node = program.nodes[id];
    bool now = false;
    switch (node.kind) {
      case NodeKind::kReturn:
        now = true;
        break;
      case NodeKind::kSplit:
        for (uint32_t i = node.a; i < node.b && !now; ++i) now = nullable[program.targets[i]];
        break;
      case NodeKind::kCall:
        now = nullable[node.a] && nullable[node.next];
        break;
      case NodeKind::kLoop:
        now = (node.min == 0 || nullable[node.a]) && nullable[node.next];
        break;
      default:
        break;
    }
    if (!now) return;
    nullable[id] = true;
    work.push_back(id);
  };
  for (NodeId id = 0; id < count; ++id) settle(id);
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    for (uint32_t i = begin[id]; i < begin[id + 1]; ++i) {
      // A split needs one of its targets, and this is one: no need to look at all of them again.
      const NodeId user = users[i];
      if (program.nodes[user].kind == NodeKind::kSplit) {
        if (nullable[user]) continue;
        nullable[user] = true;
        work.push_back(user);
      } else {
        settle(user);
      }
    }
  }
  return nullable;
}

// Strongly connected components of "reachable without reading anything". R. Tarjan, "Depth-first search and linear
// graph algorithms", SIAM J. Comput. 1 (1972), with a stack of its own.
class Components {
 public:
  Components(const Program& program, const std::vector<bool>& nullable)
      : program_(program), nullable_(nullable), index_(program.nodes.size(), kNone), low_(index_), component_(index_) {
    for (NodeId id = 0; id < program.nodes.size(); ++id) {
      if (index_[id] == kNone) Visit(id);
    }
  }
  uint32_t of(NodeId id) const { return component_[id]; }

 private:
  // The `i`th successor, or kNone.
  NodeId Successor(NodeId id, uint32_t i) const {
    const Node& node = program_.nodes[id];
    switch (node.kind) {
      case NodeKind::kSplit:
        return node.a + i < node.b ? program_.targets[node.a + i] : kNone;
      case NodeKind::kCall:
        if (i == 0) return node.a;
        return i == 1 && nullable_[node.a] ? node.next : kNone;
      case NodeKind::kLoop:
        if (i == 0) return node.a;
        return i == 1 && (node.min == 0 || nullable_[node.a]) ? node.next : kNone;
      default:
        return kNone;
    }
  }

  void Enter(NodeId id) {
    index_[id] = low_[id] = next_++;
    open_.push_back(id);
    path_.emplace_back(id, 0);
  }

  void Visit(NodeId start) {
    Enter(start);
    while (!path_.empty()) {
      const NodeId id = path_.back().first;
      const NodeId to = Successor(id, path_.back().second++);
      if (to != kNone) {
        if (index_[to] == kNone) {
          Enter(to);
        } else if (component_[to] == kNone) {
          low_[id] = std::min(low_[id], index_[to]);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[path_.back().first] = std::min(low_[path_.back().first], low_[id]);
      if (low_[id] != index_[id]) continue;
      NodeId member;
      do {
        member = open_.back();
        open_.pop_back();
        component_[member] = id;
      } while (member != id);
    }
  }

  const Program& program_;
  const std::vector<bool>& nullable_;
  std::vector<uint32_t> index_, low_, component_;
  std::vector<NodeId> open_;
  std::vector<std::pair<NodeId, uint32_t>> path_;
  uint32_t next_ = 0;
};

}  // namespace

void RemoveJumps(Program& program, std::vector<NodeId>& rules) {
  std::vector<Node>& nodes = program.nodes;
  // Each path of jumps is walked once, then shortened.
  const auto land = [&nodes](NodeId id) {
    NodeId end = id;
    while (nodes[end].kind == NodeKind::kJump) end = nodes[end].next;
    while (nodes[id].kind == NodeKind::kJump) {
      const NodeId next = nodes[id].next;
      nodes[id].next = end;
      id = next;
    }
    return end;
  };
  for (Node& node : nodes) {
    switch (node.kind) {
      case NodeKind::kCall:
      case NodeKind::kLoop:
        node.a = land(node.a);
        node.next = land(node.next);
        break;
      case NodeKind::kToken:
      case NodeKind::kNotToken:
        node.next = land(node.next);
        break;
      default:
        break;
    }
  }
  for (ByteEdge& edge : program.edges) edge.target = land(edge.target);
  for (NodeId& target : program.targets) target = land(target);
  for (NodeId& rule : rules) rule = land(rule);
}

std::optional<size_t> FindLeftRecursion(Program& program, const std::vector<NodeId>& rules) {
  const std::vector<bool> nullable = FindNullable(program);
  for (Node& node : program.nodes) {
    if (node.kind == NodeKind::kLoop && nullable[node.a]) node.min = 0;
  }
  const Components components(program, nullable);
  std::unordered_map<NodeId, size_t> by_entry;
  for (size_t i = 0; i < rules.size(); ++i) by_entry.emplace(rules[i], i);
  std::optional<size_t> first;
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    const Node& node = program.nodes[id];
    if (node.kind != NodeKind::kCall || components.of(id) != components.of(node.a)) continue;
    const size_t rule = by_entry.at(node.a);
    first = std::min(first.value_or(rule), rule);
  }
  return first;
}

}  // namespace tokenloop::grammar
