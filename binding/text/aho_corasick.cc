#include "text/aho_corasick.h"

#include <deque>

namespace tokenloop {

AhoCorasick::AhoCorasick(const std::vector<std::string>& patterns) : nodes_(1) {
  for (const std::string& pattern : patterns) {
    lengths_.push_back(static_cast<uint32_t>(pattern.size()));
    Node node = kRoot;
    for (const char c : pattern) {
      const auto byte = static_cast<unsigned char>(c);
      Node next = Edge(node, byte);
      if (next == kRoot) {
        next = static_cast<Node>(nodes_.size());
        nodes_.emplace_back();
        nodes_.back().depth = nodes_[node].depth + 1;
        nodes_[node].edges.emplace_back(byte, next);
        if (node == kRoot) root_[byte] = next;
      }
      node = next;
    }
    if (node != kRoot && nodes_[node].match < 0) nodes_[node].match = static_cast<int32_t>(lengths_.size()) - 1;
  }
  // Breadth first: a node's failure link points to a shallower node, which is finished by then.
  std::deque<Node> queue;
  for (const auto& [byte, child] : nodes_[kRoot].edges) queue.push_back(child);
  while (!queue.empty()) {
    const Node node = queue.front();
    queue.pop_front();
    const State& suffix = nodes_[nodes_[node].fail];
    nodes_[node].shortest = suffix.shortest >= 0 ? suffix.shortest : nodes_[node].match;
    if (nodes_[node].match < 0) nodes_[node].match = suffix.match;
    for (const auto& [byte, child] : nodes_[node].edges) {
      nodes_[child].fail = Next(nodes_[node].fail, byte);
      queue.push_back(child);
    }
  }
}

AhoCorasick::Node AhoCorasick::Edge(Node node, unsigned char byte) const {
  if (node == kRoot) return root_[byte];
  for (const auto& [edge, child] : nodes_[node].edges) {
    if (edge == byte) return child;
  }
  return kRoot;
}

AhoCorasick::Node AhoCorasick::Next(Node node, unsigned char byte) const {
  while (true) {
    const Node next = Edge(node, byte);
    if (next != kRoot || node == kRoot) return next;
    node = nodes_[node].fail;
  }
}

}  // namespace tokenloop
