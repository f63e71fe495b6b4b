#include "grammar/lazy.h"

#include <algorithm>

namespace tokenloop::grammar {

std::shared_ptr<const LazyGrammar> LazyGrammar::Create(std::shared_ptr<const Grammar> grammar,
                                                       const std::vector<std::string>& markers, From from) {
  if (markers.empty()) return nullptr;
  const std::shared_ptr<LazyGrammar> lazy(new LazyGrammar(std::move(grammar), markers));
  for (const std::string& marker : markers) {
    if (marker.empty()) return nullptr;
    GrammarState state = lazy->grammar_->Start();
    if (from == From::kMarker && !state.AcceptBytes(marker)) return nullptr;
    lazy->behind_.push_back(std::move(state));
    lazy->last_bytes_ += marker.back();
  }
  return lazy;
}

bool LazyState::AcceptBytes(std::string_view bytes) {
  size_t at = 0;
  while (!state_ && at < bytes.size()) {
    node_ = lazy_->markers().Next(node_, static_cast<unsigned char>(bytes[at++]));
    const int32_t marker = lazy_->markers().match(node_);
    if (marker >= 0) state_ = lazy_->behind(marker);
  }
  return !state_ || state_->AcceptBytes(bytes.substr(at));
}

bool LazyState::AcceptToken(uint32_t id, std::string_view bytes) {
  return state_ ? state_->AcceptToken(id, bytes) : AcceptBytes(bytes);
}

const std::vector<LazyMasker::End>& LazyMasker::EndsFrom(AhoCorasick::Node start) {
  const auto [entry, added] = ends_.try_emplace(start);
  std::vector<End>& ends = entry->second;
  if (!added) return ends;
  const std::vector<Vocabulary::Node>& nodes = masker_->vocabulary().nodes();
  const AhoCorasick& markers = lazy_->markers();
  uint64_t last = 0;
  for (const char byte : lazy_->last_bytes()) last |= uint64_t{1} << Vocabulary::ByteClass(static_cast<uint8_t>(byte));
  std::vector<AhoCorasick::Node> path(size_t{nodes[0].height} + 1, start);
  for (uint32_t i = 1; i < nodes[0].end;) {
    const Vocabulary::Node& node = nodes[i];
    const AhoCorasick::Node at = markers.Next(path[node.depth - 1U], node.byte);
    const int32_t marker = markers.match(at);
    path[node.depth] = at;
    if (marker >= 0) ends.push_back({i, marker});
    // Behind a marker the grammar decides; without a marker's last byte, none ends below.
    i = marker >= 0 || (node.classes & last) == 0 ? node.end : i + 1;
  }
  return ends;
}

bool LazyMasker::Compute(const LazyState& state, std::span<uint64_t> mask) {
  if (state.started()) {
    return masker_->Compute(state.state(), mask);
  }
  const Vocabulary& vocabulary = masker_->vocabulary();
  const std::vector<Vocabulary::Node>& nodes = vocabulary.nodes();
  std::fill(mask.begin(), mask.end(), ~uint64_t{0});
  if (vocabulary.size() % 64 != 0) mask.back() >>= 64 - vocabulary.size() % 64;
  const std::lock_guard lock(mutex_);
  std::unordered_map<int32_t, std::vector<uint32_t>> by_marker;
  for (const End& end : EndsFrom(state.node())) {
    const uint32_t first = nodes[end.node + 1].tokens;
    const uint32_t last = nodes[nodes[end.node].end].tokens;
    for (uint32_t i = first; i < last; ++i) {
      const uint32_t id = vocabulary.ids()[i];
      mask[id / 64] &= ~(uint64_t{1} << (id % 64));
    }
    if (first < last) by_marker[end.marker].push_back(end.node);
  }
  bool whole = true;
  for (auto& [marker, from] : by_marker) {
    whole = masker_->AddBelow(lazy_->behind(marker), std::move(from), mask) && whole;
  }
  return whole;
}

}  // namespace tokenloop::grammar
