// A trie over byte strings for longest-match and all-prefix look-ups. Nodes are numbers; the edges of all
// nodes share one flat hash table, the root's are an array.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tenon {

class ByteTrie {
 public:
  ByteTrie();

  // A text given twice keeps the value given last. `value` >= 0.
  void add(std::string_view text, int32_t value);

  static constexpr int32_t kRoot = 0;
  // -1 where there is no such edge.
  int32_t step(int32_t node, unsigned char byte) const {
    if (node == kRoot) return root_[byte];
    const uint64_t key = static_cast<uint64_t>(node) << 8 | byte;
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const Edge& edge = edges_[at];
      if (edge.key == key) return edge.to;
      if (edge.to < 0) return -1;
    }
  }
  // -1 where no text ends here.
  int32_t value(int32_t node) const { return values_[static_cast<size_t>(node)]; }

  bool empty() const { return values_.size() == 1; }
  bool starts(unsigned char byte) const { return root_[byte] >= 0; }

  struct Match {
    int32_t value = -1;
    size_t bytes = 0;
  };
  // The longest text that `text` begins with.
  Match longest(std::string_view text) const {
    Match best;
    int32_t node = kRoot;
    for (size_t i = 0; i < text.size(); ++i) {
      node = step(node, static_cast<unsigned char>(text[i]));
      if (node < 0) break;
      if (value(node) >= 0) best = {value(node), i + 1};
    }
    return best;
  }

 private:
  struct Edge {
    uint64_t key = 0;
    int32_t to = -1;
  };

  size_t slot_of(uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull) >> shift_; }
  void put(uint64_t key, int32_t to);

  std::array<int32_t, 256> root_;
  std::vector<int32_t> values_;
  std::vector<Edge> edges_;
  size_t mask_ = 0;
  size_t edge_count_ = 0;
  int shift_ = 0;
};

}  // namespace tenon
