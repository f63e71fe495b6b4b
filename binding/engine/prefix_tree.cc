#include "engine/prefix_tree.h"

#include <algorithm>
#include <utility>

namespace tokenloop {

PrefixTree::~PrefixTree() {
  // Chains of nodes can be long: taken apart in a loop, not by recursive destructors.
  std::vector<std::unique_ptr<Node>> nodes;
  for (auto& [key, root] : roots_) nodes.push_back(std::move(root));
  while (!nodes.empty()) {
    std::unique_ptr<Node> node = std::move(nodes.back());
    nodes.pop_back();
    for (auto& child : node->children) nodes.push_back(std::move(child));
  }
}

PrefixTree::Match PrefixTree::Find(const std::string& key, std::span<const Token> tokens, const Usable& usable) const {
  const auto root = roots_.find(key);
  if (root == roots_.end()) return {};
  Match best;
  // Depth first over all children that go on as the prompt does; equal runs may lie side by side.
  std::vector<std::pair<const Node*, uint32_t>> open = {{root->second.get(), 0}};
  while (!open.empty()) {
    const auto [node, depth] = open.back();
    open.pop_back();
    for (const auto& child : node->children) {
      const auto [end, at] =
          std::mismatch(child->tokens.begin(), child->tokens.end(), tokens.begin() + depth, tokens.end());
      const auto length = depth + static_cast<uint32_t>(end - child->tokens.begin());
      if (length > best.length) {
        const Sequence source = usable ? UsableBelow(child.get(), length, usable) : AnyBelow(child.get());
        if (source >= 0) best = {length, source};
      }
      if (end == child->tokens.end() && length < tokens.size()) open.emplace_back(child.get(), length);
    }
  }
  return best;
}

std::vector<PrefixTree::Run> PrefixTree::Runs(const std::string& key) const {
  std::vector<Run> runs;
  const auto root = roots_.find(key);
  if (root == roots_.end()) return runs;
  struct Open {
    const Node* node;
    int32_t parent;
    uint32_t start;
  };
  std::vector<Open> open = {{root->second.get(), -1, 0}};
  while (!open.empty()) {
    const auto [node, parent, start] = open.back();
    open.pop_back();
    int32_t self = parent;
    if (!node->tokens.empty()) {
      self = static_cast<int32_t>(runs.size());
      runs.push_back({parent, start, !node->ends.empty(), AnyBelow(node), node->tokens});
    }
    const uint32_t end = start + static_cast<uint32_t>(node->tokens.size());
    for (const auto& child : node->children) open.push_back({child.get(), self, end});
  }
  return runs;
}

void PrefixTree::Add(Sequence sequence, const std::string& key) {
  Node* root = Root(key);
  Enter(root, sequence);
  paths_[sequence] = {root, 0, true};
}

void PrefixTree::AddShared(Sequence sequence, Sequence source, uint32_t length) {
  const Path path = paths_.at(source);
  Node* node = path.end;
  uint32_t end = path.length;  // depth at the end of `node`
  while (end - node->tokens.size() >= length && node->parent != nullptr) {
    end -= static_cast<uint32_t>(node->tokens.size());
    node = node->parent;
  }
  if (end > length) node = Split(node, node->tokens.size() - (end - length));
  Enter(node, sequence);
  paths_[sequence] = {node, length, true};
}

void PrefixTree::Append(Sequence sequence, std::span<const Token> tokens) {
  if (tokens.empty()) return;
  Path& path = paths_.at(sequence);
  Node* node = path.end;
  if (node->sequences != 1 || node->parent == nullptr) {
    auto child = std::make_unique<Node>();
    child->parent = node;
    child->sequences = 1;
    child->active = path.active ? 1 : 0;
    child->ends.push_back(sequence);
    std::erase(node->ends, sequence);
    path.end = child.get();
    node->children.push_back(std::move(child));
    node = path.end;
  }
  node->tokens.insert(node->tokens.end(), tokens.begin(), tokens.end());
  path.length += static_cast<uint32_t>(tokens.size());
  cells_ += static_cast<uint32_t>(tokens.size());
  if (path.active) active_cells_ += static_cast<uint32_t>(tokens.size());
}

void PrefixTree::Keep(Sequence sequence) { Deactivate(paths_.at(sequence)); }

void PrefixTree::Remove(Sequence sequence) {
  const auto found = paths_.find(sequence);
  if (found == paths_.end()) return;
  Deactivate(found->second);
  Node* node = found->second.end;
  paths_.erase(found);
  std::erase(node->ends, sequence);
  while (node != nullptr) {
    Node* parent = node->parent;
    if (--node->sequences == 0 && parent != nullptr) {
      cells_ -= static_cast<uint32_t>(node->tokens.size());
      std::erase_if(parent->children, [&](const auto& child) { return child.get() == node; });
    }
    node = parent;
  }
  // Keys come from requests: a root that holds nothing is forgotten.
  std::erase_if(roots_, [](const auto& root) { return root.second->sequences == 0; });
}

uint32_t PrefixTree::Length(Sequence sequence) const { return paths_.at(sequence).length; }

uint32_t PrefixTree::OwnCells(Sequence sequence) const {
  uint32_t cells = 0;
  for (const Node* node = paths_.at(sequence).end; node != nullptr && node->sequences == 1; node = node->parent) {
    cells += static_cast<uint32_t>(node->tokens.size());
  }
  return cells;
}

uint32_t PrefixTree::IdleCells(Sequence source, uint32_t length) const {
  const Path& path = paths_.at(source);
  uint32_t idle = 0;
  uint32_t end = path.length;
  for (const Node* node = path.end; node != nullptr; node = node->parent) {
    const auto size = static_cast<uint32_t>(node->tokens.size());
    const uint32_t begin = end - size;
    if (node->active == 0 && begin < length) idle += std::min(end, length) - begin;
    end = begin;
  }
  return idle;
}

// Cuts a node in two and returns the upper one, which has the first `offset` tokens. The lower one stays where the
// paths point to.
PrefixTree::Node* PrefixTree::Split(Node* node, size_t offset) {
  auto upper = std::make_unique<Node>();
  Node* const result = upper.get();
  Node* const parent = node->parent;
  upper->parent = parent;
  upper->sequences = node->sequences;
  upper->active = node->active;
  upper->tokens.assign(node->tokens.begin(), node->tokens.begin() + static_cast<std::ptrdiff_t>(offset));
  node->tokens.erase(node->tokens.begin(), node->tokens.begin() + static_cast<std::ptrdiff_t>(offset));
  const auto place = std::find_if(parent->children.begin(), parent->children.end(),
                                  [&](const auto& child) { return child.get() == node; });
  upper->children.push_back(std::move(*place));
  node->parent = result;
  *place = std::move(upper);
  return result;
}

PrefixTree::Sequence PrefixTree::AnyBelow(const Node* node) {
  while (node->ends.empty()) node = node->children.front().get();
  return node->ends.front();
}

// -1: none.
PrefixTree::Sequence PrefixTree::UsableBelow(const Node* node, uint32_t length, const Usable& usable) {
  std::vector<const Node*> open = {node};
  while (!open.empty()) {
    const Node* const next = open.back();
    open.pop_back();
    for (const Sequence sequence : next->ends) {
      if (usable(sequence, length)) return sequence;
    }
    for (const auto& child : next->children) open.push_back(child.get());
  }
  return -1;
}

void PrefixTree::Enter(Node* node, Sequence sequence) {
  node->ends.push_back(sequence);
  for (; node != nullptr; node = node->parent) {
    ++node->sequences;
    if (node->active++ == 0) active_cells_ += static_cast<uint32_t>(node->tokens.size());
  }
}

void PrefixTree::Deactivate(Path& path) {
  if (!path.active) return;
  path.active = false;
  for (Node* node = path.end; node != nullptr; node = node->parent) {
    if (--node->active == 0) active_cells_ -= static_cast<uint32_t>(node->tokens.size());
  }
}

PrefixTree::Node* PrefixTree::Root(const std::string& key) {
  std::unique_ptr<Node>& root = roots_[key];
  if (!root) root = std::make_unique<Node>();
  return root.get();
}

}  // namespace tokenloop
