// The byte strings of a model's tokens as a trie. Pure. Built once per model, immutable, read by any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tokenloop::grammar {

class Vocabulary {
 public:
  // In depth-first order: the nodes under a node follow it at once, up to `end`; of siblings, the highest come first.
  struct Node {
    uint64_t classes;  // of the bytes on the edges under this node, see ByteClass
    uint32_t end;
    uint32_t tokens;      // index into ids(); its own end where the next node's begin
    uint16_t depth;       // bytes from the root
    uint16_t height;      // bytes to the deepest node below
    uint16_t characters;  // that begin on the way from the root, up to the node's own byte
    uint8_t byte;         // on the edge to this node
    bool utf8;            // from a character's boundary here, all below are well-formed UTF-8, or the beginning of it
  };

  // `pieces[id]`: the bytes that token `id` stands for in a text; empty for control and unused tokens, which no text
  // matches. Tokens longer than 65,534 bytes are taken for unused.
  explicit Vocabulary(std::span<const std::string> pieces);

  // Nodes, and one more behind them so that node i's own tokens always are ids()[i.tokens, (i + 1).tokens).
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<uint32_t>& ids() const { return ids_; }
  // By index into ids(): characters that begin in the token.
  const std::vector<uint16_t>& characters() const { return characters_; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size() - 1); }
  size_t size() const { return size_; }
  // 64-bit words of a mask over all tokens.
  size_t words() const { return (size_ + 63) / 64; }
  size_t bytes() const {
    return nodes_.capacity() * sizeof(Node) + ids_.capacity() * (sizeof(uint32_t) + sizeof(uint16_t));
  }

  // Bytes that grammars seldom tell apart share a class; there are fewer than 64.
  static uint32_t ByteClass(uint8_t byte);
  static constexpr uint32_t kMultibyteClass = 63;

 private:
  void OrderByHeight();

  std::vector<Node> nodes_;
  std::vector<uint32_t> ids_;
  std::vector<uint16_t> characters_;
  size_t size_ = 0;
};

}  // namespace tokenloop::grammar
