// Finds any of several byte strings in a stream, in time linear in the stream. Pure. Immutable after construction, so
// one automaton may be read by several threads; the position (a node number) belongs to the reader.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenloop {

// A. V. Aho, M. J. Corasick, "Efficient string matching", CACM 18 (1975).
class AhoCorasick {
 public:
  using Node = uint32_t;
  static constexpr Node kRoot = 0;

  // Empty patterns are ignored.
  explicit AhoCorasick(const std::vector<std::string>& patterns);

  bool empty() const { return nodes_.size() == 1; }
  Node Next(Node node, unsigned char byte) const;
  // Length of the longest suffix of what was read that begins a pattern.
  uint32_t depth(Node node) const { return nodes_[node].depth; }
  // Index of the longest pattern that ends here, or -1.
  int32_t match(Node node) const { return nodes_[node].match; }
  // Index of the shortest pattern that ends here, or -1.
  int32_t shortest_match(Node node) const { return nodes_[node].shortest; }
  uint32_t pattern_length(int32_t index) const { return lengths_[static_cast<size_t>(index)]; }

 private:
  struct State {
    std::vector<std::pair<unsigned char, Node>> edges;  // few per node
    Node fail = kRoot;
    uint32_t depth = 0;
    int32_t match = -1;
    int32_t shortest = -1;
  };
  Node Edge(Node node, unsigned char byte) const;  // kRoot when there is none

  std::vector<State> nodes_;
  std::array<Node, 256> root_{};
  std::vector<uint32_t> lengths_;
};

}  // namespace tokenloop
