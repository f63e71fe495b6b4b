#include "grammar/vocabulary.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tokenloop::grammar {

namespace {

// States of a UTF-8 decoder: 0 between characters, others within one. 8: ill-formed.
constexpr uint8_t kIll = 8;
uint8_t NextUtf8(uint8_t state, uint8_t byte) {
  const auto within = [byte](uint8_t low, uint8_t high) { return byte >= low && byte <= high; };
  switch (state) {
    case 0:
      if (byte < 0x80) return 0;
      if (within(0xC2, 0xDF)) return 1;
      if (byte == 0xE0) return 3;
      if (byte == 0xED) return 4;
      if (within(0xE1, 0xEF)) return 2;
      if (byte == 0xF0) return 6;
      if (within(0xF1, 0xF3)) return 5;
      return byte == 0xF4 ? 7 : kIll;
    case 1:
      return within(0x80, 0xBF) ? 0 : kIll;
    case 2:
      return within(0x80, 0xBF) ? 1 : kIll;
    case 3:
      return within(0xA0, 0xBF) ? 1 : kIll;
    case 4:
      return within(0x80, 0x9F) ? 1 : kIll;
    case 5:
      return within(0x80, 0xBF) ? 2 : kIll;
    case 6:
      return within(0x90, 0xBF) ? 2 : kIll;
    case 7:
      return within(0x80, 0x8F) ? 2 : kIll;
    default:
      return kIll;
  }
}

}  // namespace

uint32_t Vocabulary::ByteClass(uint8_t byte) {
  static constexpr auto classes = [] {
    std::array<uint8_t, 256> table{};
    uint8_t next = 7;
    for (int b = 0; b < 256; ++b) {
      uint8_t& entry = table[static_cast<size_t>(b)];
      if (b >= 0x80) {
        entry = kMultibyteClass;
      } else if (b >= '0' && b <= '9') {
        entry = 0;
      } else if (b >= 'a' && b <= 'f') {
        entry = 1;
      } else if (b >= 'g' && b <= 'z') {
        entry = 2;
      } else if (b >= 'A' && b <= 'F') {
        entry = 3;
      } else if (b >= 'G' && b <= 'Z') {
        entry = 4;
      } else if (b == 0x7F) {
        entry = 5;
      } else if (b < 0x20 && b != '\t' && b != '\n' && b != '\r') {
        entry = 6;
      } else {
        entry = next++;
      }
    }
    return table;
  }();
  return classes[byte];
}

Vocabulary::Vocabulary(std::span<const std::string> pieces) : size_(pieces.size()) {
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    if (!pieces[id].empty() && pieces[id].size() < UINT16_MAX) ids_.push_back(id);
  }
  std::stable_sort(ids_.begin(), ids_.end(), [&](uint32_t x, uint32_t y) { return pieces[x] < pieces[y]; });
  nodes_.push_back({});
  std::vector<uint32_t> parents{0};
  std::vector<uint32_t> path{0};  // nodes from the root to the last token's
  std::string_view last;
  for (uint32_t i = 0; i < ids_.size(); ++i) {
    const std::string_view piece = pieces[ids_[i]];
    const auto split = std::mismatch(last.begin(), last.end(), piece.begin(), piece.end());
    path.resize(static_cast<size_t>(split.first - last.begin()) + 1);
    while (path.size() <= piece.size()) {
      Node node{};
      node.depth = static_cast<uint16_t>(path.size());
      node.byte = static_cast<uint8_t>(piece[path.size() - 1]);
      node.tokens = i;
      node.characters = nodes_[path.back()].characters + ((node.byte & 0xC0) == 0x80 ? 0 : 1);
      parents.push_back(path.back());
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back(node);
    }
    last = piece;
  }
  const auto count = static_cast<uint32_t>(nodes_.size());
  Node behind{};
  behind.tokens = static_cast<uint32_t>(ids_.size());
  nodes_.push_back(behind);
  nodes_.shrink_to_fit();

  // From the last node to the first, so that a node's children are complete before it. `sound[i]`: the decoder states
  // from which everything below node i is well-formed.
  std::vector<uint8_t> sound(count, 0xFF);
  std::vector<uint32_t> last_child(count, 0);
  for (uint32_t i = count; i-- > 0;) {
    Node& node = nodes_[i];
    node.end = last_child[i] == 0 ? i + 1 : nodes_[last_child[i]].end;
    node.utf8 = (sound[i] & 1) != 0;
    if (i == 0) break;
    const uint32_t parent = parents[i];
    if (last_child[parent] == 0) last_child[parent] = i;
    Node& above = nodes_[parent];
    above.classes |= node.classes | (uint64_t{1} << ByteClass(node.byte));
    above.height = std::max<uint16_t>(above.height, static_cast<uint16_t>(node.height + 1));
    for (uint8_t state = 0; state < kIll; ++state) {
      const uint8_t next = NextUtf8(state, node.byte);
      if (next == kIll || (sound[i] & (1U << next)) == 0) sound[parent] &= static_cast<uint8_t>(~(1U << state));
    }
  }
  OrderByHeight();
}

void Vocabulary::OrderByHeight() {
  std::vector<Node> nodes;
  std::vector<uint32_t> ids;
  nodes.reserve(nodes_.size());
  ids.reserve(ids_.size());
  characters_.reserve(ids_.size());
  std::vector<uint32_t> open{0};
  std::vector<uint32_t> children;
  while (!open.empty()) {
    const uint32_t old = open.back();
    open.pop_back();
    Node node = nodes_[old];
    node.end = static_cast<uint32_t>(nodes.size()) + (node.end - old);
    node.tokens = static_cast<uint32_t>(ids.size());
    nodes.push_back(node);
    ids.insert(ids.end(), ids_.begin() + nodes_[old].tokens, ids_.begin() + nodes_[old + 1].tokens);
    characters_.resize(ids.size(), node.characters);
    children.clear();
    for (uint32_t child = old + 1; child < nodes_[old].end; child = nodes_[child].end) children.push_back(child);
    // The last one pushed is the first one out.
    std::sort(children.begin(), children.end(), [&](uint32_t x, uint32_t y) {
      return nodes_[x].height != nodes_[y].height ? nodes_[x].height < nodes_[y].height : x > y;
    });
    open.insert(open.end(), children.begin(), children.end());
  }
  nodes.push_back(nodes_.back());
  nodes_.swap(nodes);
  ids_.swap(ids);
}

}  // namespace tokenloop::grammar
