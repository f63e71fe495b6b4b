// Which KV cells hold which tokens, and who shares them. Pure: no llama.h. Owned by the loop thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace tokenloop {

// A sequence is a path of nodes from a root; a node is a run of KV cells that every sequence below it shares. Unlike in
// a radix tree two children may begin with the same token: they are cells of their own, computed twice. The tree counts
// cells exactly and finds the longest prefix of a prompt that some sequence, running or kept, has in its cells.
//
// There is a root per tenant key: sequences of different keys never share.
class PrefixTree {
 public:
  using Token = int32_t;
  using Sequence = int32_t;

  struct Match {
    uint32_t length = 0;   // tokens
    Sequence source = -1;  // a sequence that holds them; -1 when length is 0
  };

  PrefixTree() = default;
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;
  ~PrefixTree();

  // Whether a sequence can be the source of its first `length` tokens. One that can, can be of more, too.
  using Usable = std::function<bool(Sequence sequence, uint32_t length)>;
  // The longest prefix of `tokens` that a sequence of this key holds; `usable` may exclude some.
  Match Find(const std::string& key, std::span<const Token> tokens, const Usable& usable = {}) const;

  // Tokens whose cells the same sequences hold.
  struct Run {
    int32_t parent;     // index of the run before it, which comes earlier in the list; -1: none
    uint32_t start;     // position of its first token
    bool ends;          // whether a sequence ends with it
    Sequence sequence;  // one that holds it
    std::vector<Token> tokens;
  };
  // All runs of a key's sequences.
  std::vector<Run> Runs(const std::string& key) const;

  // Adds an active sequence without cells.
  void Add(Sequence sequence, const std::string& key);
  // Adds an active sequence that shares the first `length` tokens of `source`, which has at least as many.
  void AddShared(Sequence sequence, Sequence source, uint32_t length);
  // The sequence got cells for these tokens, after those it has.
  void Append(Sequence sequence, std::span<const Token> tokens);
  // It is not active any more, but its cells stay until Remove.
  void Keep(Sequence sequence);
  // Its cells are free where no other sequence shares them.
  void Remove(Sequence sequence);

  // Tokens that the sequence holds.
  uint32_t Length(Sequence sequence) const;
  // Cells that only this sequence holds: what removing it frees.
  uint32_t OwnCells(Sequence sequence) const;
  // Of the first `length` tokens of `source`, how many no active sequence holds.
  uint32_t IdleCells(Sequence source, uint32_t length) const;
  // Cells held by anyone, and by active sequences.
  uint32_t cells() const { return cells_; }
  uint32_t active_cells() const { return active_cells_; }

 private:
  struct Node {
    Node* parent = nullptr;
    std::vector<Token> tokens;
    std::vector<std::unique_ptr<Node>> children;
    std::vector<Sequence> ends;  // sequences whose last cell is here
    uint32_t sequences = 0;      // sequences that go through here or end here
    uint32_t active = 0;         // those of them that are active
  };
  struct Path {
    Node* end;
    uint32_t length;
    bool active;
  };

  static Node* Split(Node* node, size_t offset);
  static Sequence AnyBelow(const Node* node);
  void Enter(Node* node, Sequence sequence);
  void Deactivate(Path& path);
  static Sequence UsableBelow(const Node* node, uint32_t length, const Usable& usable);
  Node* Root(const std::string& key);

  std::map<std::string, std::unique_ptr<Node>> roots_;
  std::unordered_map<Sequence, Path> paths_;
  uint32_t cells_ = 0;
  uint32_t active_cells_ = 0;
};

}  // namespace tokenloop
