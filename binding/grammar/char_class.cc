#include "grammar/char_class.h"

#include <algorithm>
#include <array>

namespace tokenloop::grammar {

namespace {

constexpr uint32_t kLast = 0x10FFFF;

class ClassBuilder {
 public:
  ClassBuilder(Program& program, NodeId exit) : program_(program) { full_.fill(exit); }

  NodeId Build(const std::vector<CodePointRange>& ranges) {
    struct Length {
      uint32_t low, high, continuation;
      uint8_t lead;
    };
    constexpr Length lengths[] = {
        {0, 0x7F, 0, 0}, {0x80, 0x7FF, 1, 0xC0}, {0x800, 0xFFFF, 2, 0xE0}, {0x10000, kLast, 3, 0xF0}};
    std::vector<ByteEdge> edges;
    for (const Length& length : lengths) {
      std::vector<CodePointRange> part;
      for (const CodePointRange& range : ranges) {
        const uint32_t low = std::max(range.low, length.low);
        const uint32_t high = std::min(range.high, length.high);
        if (low <= high) part.push_back({low, high});
      }
      AddEdges(part, length.continuation, length.lead, edges);
    }
    return AddNode(edges);
  }

 private:
  NodeId AddNode(const std::vector<ByteEdge>& edges) {
    const auto first = static_cast<uint32_t>(program_.edges.size());
    program_.edges.insert(program_.edges.end(), edges.begin(), edges.end());
    Node node;
    node.kind = NodeKind::kMatch;
    node.a = first;
    node.b = static_cast<uint32_t>(program_.edges.size());
    program_.nodes.push_back(node);
    return static_cast<NodeId>(program_.nodes.size() - 1);
  }

  // Edges for the byte above `rest` continuation bytes; depth is at most three, whatever the input.
  void AddEdges(const std::vector<CodePointRange>& ranges, uint32_t rest, uint8_t lead, std::vector<ByteEdge>& edges) {
    const uint32_t size = 1U << (6 * rest);
    std::vector<CodePointRange> partial;  // within block `block`
    uint32_t block = 0;
    const auto flush = [&] {
      if (partial.empty()) return;
      std::vector<ByteEdge> inner;
      AddEdges(partial, rest - 1, 0x80, inner);
      const auto byte = static_cast<uint8_t>(lead + block);
      edges.push_back({byte, byte, AddNode(inner)});
      partial.clear();
    };
    for (const CodePointRange& range : ranges) {
      uint32_t low = range.low;
      while (low <= range.high) {
        const uint32_t first = low / size;
        const uint32_t end = std::min(range.high, first * size + size - 1);
        if (first != block) flush();
        block = first;
        if (low % size == 0 && end % size == size - 1) {
          const uint32_t blocks = (range.high - low + 1) / size;
          edges.push_back(
              {static_cast<uint8_t>(lead + first), static_cast<uint8_t>(lead + first + blocks - 1), Full(rest)});
          low += blocks * size;
        } else {
          partial.push_back({low % size, end % size});
          low = end + 1;
        }
      }
    }
    flush();
  }

  // The node for any `rest` continuation bytes.
  NodeId Full(uint32_t rest) {
    for (uint32_t i = 1; i <= rest; ++i) {
      if (full_[i] == full_[0]) full_[i] = AddNode({{0x80, 0xBF, full_[i - 1]}});
    }
    return full_[rest];
  }

  Program& program_;
  std::array<NodeId, 4> full_{};
};

}  // namespace

std::vector<CodePointRange> NormaliseClass(std::vector<CodePointRange> ranges, bool negated) {
  constexpr CodePointRange surrogates{0xD800, 0xDFFF};
  if (negated) ranges.push_back(surrogates);
  std::sort(ranges.begin(), ranges.end(), [](const auto& x, const auto& y) { return x.low < y.low; });
  std::vector<CodePointRange> joined;
  for (const CodePointRange& range : ranges) {
    if (!joined.empty() && range.low <= joined.back().high + 1) {
      joined.back().high = std::max(joined.back().high, range.high);
    } else {
      joined.push_back(range);
    }
  }
  std::vector<CodePointRange> result;
  if (negated) {
    uint32_t next = 0;
    for (const CodePointRange& range : joined) {
      if (range.low > next) result.push_back({next, range.low - 1});
      next = range.high + 1;
    }
    if (next <= kLast) result.push_back({next, kLast});
    return result;
  }
  for (const CodePointRange& range : joined) {
    if (range.low < surrogates.low) result.push_back({range.low, std::min(range.high, surrogates.low - 1)});
    if (range.high > surrogates.high) result.push_back({std::max(range.low, surrogates.high + 1), range.high});
  }
  return result;
}

NodeId AddClass(Program& program, const std::vector<CodePointRange>& ranges, NodeId exit) {
  return ClassBuilder(program, exit).Build(ranges);
}

}  // namespace tokenloop::grammar
