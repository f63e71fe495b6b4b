// A compiled grammar: a graph of nodes over bytes, with calls between rules. Pure. Immutable once ParseGbnf has handed
// it out, so any number of threads may read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokenloop::grammar {

using NodeId = uint32_t;

// What a thread of the matcher may stand at. Only kMatch, kToken and kNotToken wait for input; the others are passed
// through at once.
enum class NodeKind : uint8_t {
  kReturn,    // the end of a rule or of a repetition's body
  kMatch,     // one byte: edges [a, b)
  kToken,     // the token `a` as a whole, then next
  kNotToken,  // any token but `a`, then next
  kSplit,     // any of targets [a, b)
  kCall,      // the node `a`, up to its return, then next
  kLoop,      // the node `a`, up to its return, between min and max times, then next
  kJump,      // next; none are left in a finished program
};

struct Node {
  static constexpr uint32_t kUnbounded = UINT32_MAX;

  NodeKind kind = NodeKind::kReturn;
  uint32_t a = 0;
  uint32_t b = 0;
  NodeId next = 0;
  // kLoop only. min is 0 where the body may be empty: then empty turns need not be counted, and never are taken.
  uint32_t min = 0;
  uint32_t max = 0;
};

struct ByteEdge {
  uint8_t low = 0;
  uint8_t high = 0;
  NodeId target = 0;
};

struct Program {
  static constexpr NodeId kReturnNode = 0;

  std::vector<Node> nodes;
  std::vector<ByteEdge> edges;  // of one node: ascending, disjoint
  std::vector<NodeId> targets;
  NodeId root = 0;

  size_t bytes() const {
    return nodes.capacity() * sizeof(Node) + edges.capacity() * sizeof(ByteEdge) + targets.capacity() * sizeof(NodeId);
  }
};

}  // namespace tokenloop::grammar
