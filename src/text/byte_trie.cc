#include "text/byte_trie.h"

#include <bit>
#include <utility>

#include "base/check.h"

namespace tenon {

ByteTrie::ByteTrie() : values_(1, -1), edges_(16), mask_(15), shift_(60) {
  root_.fill(-1);
}

void ByteTrie::put(uint64_t key, int32_t to) {
  size_t at = slot_of(key);
  while (edges_[at].to >= 0) at = (at + 1) & mask_;
  edges_[at] = {key, to};
}

void ByteTrie::add(std::string_view text, int32_t value) {
  CHECK(value >= 0 && !text.empty());
  int32_t node = kRoot;
  for (unsigned char byte : text) {
    int32_t next = step(node, byte);
    if (next < 0) {
      next = static_cast<int32_t>(values_.size());
      values_.push_back(-1);
      if (node == kRoot) {
        root_[byte] = next;
      } else {
        if ((edge_count_ + 1) * 2 > edges_.size()) {
          const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
          mask_ = edges_.size() - 1;
          shift_ = 64 - std::countr_zero(edges_.size());
          for (const Edge& edge : old) {
            if (edge.to >= 0) put(edge.key, edge.to);
          }
        }
        put(static_cast<uint64_t>(node) << 8 | byte, next);
        ++edge_count_;
      }
    }
    node = next;
  }
  values_[static_cast<size_t>(node)] = value;
}

}  // namespace tenon
