#include "grammar/literals.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tokenloop::grammar {

namespace {

NodeId AddSplit(Program& program, const std::vector<NodeId>& targets) {
  const auto first = static_cast<uint32_t>(program.targets.size());
  program.targets.insert(program.targets.end(), targets.begin(), targets.end());
  program.nodes.push_back({NodeKind::kSplit, first, static_cast<uint32_t>(program.targets.size())});
  return static_cast<NodeId>(program.nodes.size() - 1);
}

}  // namespace

void MergeLiterals(Program& program) {
  std::vector<NodeId> work;
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    if (program.nodes[id].kind == NodeKind::kSplit) work.push_back(id);
  }
  // Every split that is added stands one byte further in at least two literals, and those are finite: what repeats them
  // goes through a node of another kind. Stopping early would only leave some of them apart.
  const size_t most = 4 * program.nodes.size() + 1024;
  while (!work.empty() && program.nodes.size() < most) {
    const NodeId id = work.back();
    work.pop_back();
    std::vector<NodeId> others;
    std::array<std::vector<NodeId>, 256> by_byte;
    size_t literals = 0;
    for (uint32_t i = program.nodes[id].a; i < program.nodes[id].b; ++i) {
      const NodeId target = program.targets[i];
      const Node& node = program.nodes[target];
      const ByteEdge* edge = node.kind == NodeKind::kMatch && node.b == node.a + 1 ? &program.edges[node.a] : nullptr;
      if (edge == nullptr || edge->low != edge->high) {
        others.push_back(target);
        continue;
      }
      by_byte[edge->low].push_back(edge->target);
      ++literals;
    }
    if (literals < 2) continue;
    std::vector<ByteEdge> edges;
    for (size_t byte = 0; byte < by_byte.size(); ++byte) {
      std::vector<NodeId>& targets = by_byte[byte];
      if (targets.empty()) continue;
      std::sort(targets.begin(), targets.end());
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      NodeId next = targets[0];
      if (targets.size() > 1) {
        next = AddSplit(program, targets);
        work.push_back(next);
      }
      edges.push_back({static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), next});
    }
    const auto first = static_cast<uint32_t>(program.edges.size());
    program.edges.insert(program.edges.end(), edges.begin(), edges.end());
    program.nodes.push_back({NodeKind::kMatch, first, static_cast<uint32_t>(program.edges.size())});
    const auto merged = static_cast<NodeId>(program.nodes.size() - 1);
    others.push_back(merged);
    const auto targets = static_cast<uint32_t>(program.targets.size());
    program.targets.insert(program.targets.end(), others.begin(), others.end());
    program.nodes[id].a = targets;
    program.nodes[id].b = static_cast<uint32_t>(program.targets.size());
  }
}

}  // namespace tokenloop::grammar
