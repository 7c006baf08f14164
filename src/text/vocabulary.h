// The model's vocabulary: token text <-> id. One buffer for all texts and one flat hash table; a few tens of
// nanoseconds a lookup. Not added tokens (text/added_tokens.h).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// Mixes 8 bytes at a time; for tables in memory only, never stored.
inline uint64_t quick_hash(std::string_view text) {
  constexpr uint64_t kMul = 0x9e3779b97f4a7c15ull;
  uint64_t hash = text.size() * kMul;
  const char* p = text.data();
  size_t left = text.size();
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kMul;
    hash ^= hash >> 32;
  };
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  if (left) {
    uint64_t word = 0;
    std::memcpy(&word, p, left);
    mix(word);
  }
  return hash;
}

class Vocabulary {
 public:
  void reserve(size_t tokens, size_t text_bytes);

  // Gives `id` >= 0 the text. False where the id is taken. A text given twice keeps the id given last, as in
  // a JSON object; the older id keeps its text.
  bool add(std::string_view text, int32_t id);

  // Makes the text of this id stand for this id again, where another id has the same text.
  void prefer(int32_t id);

  // -1 where it is no token.
  int32_t find(std::string_view text) const {
    if (slots_.empty()) return -1;
    const uint64_t hash = quick_hash(text);
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.id < 0) return -1;
      if (slot.tag == tag && this->text(slot.id) == text) return slot.id;
    }
  }

  // Empty for an id without a token.
  std::string_view text(int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) >= spans_.size()) return {};
    const Span span = spans_[static_cast<size_t>(id)];
    return {texts_.data() + span.begin, span.size};
  }
  bool has(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < spans_.size() && spans_[static_cast<size_t>(id)].used;
  }

  // One more than the highest id.
  int32_t size() const { return static_cast<int32_t>(spans_.size()); }
  // Tokens, without the gaps between ids.
  int32_t count() const { return count_; }

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t id = -1;
  };
  struct Span {
    size_t begin = 0;
    uint32_t size = 0;
    bool used = false;
  };

  void grow(size_t capacity);
  void point(int32_t id);

  std::string texts_;
  std::vector<Span> spans_;
  std::vector<Slot> slots_;
  size_t mask_ = 0;
  int32_t count_ = 0;
};

// Ids in files above this are refused: no model has such a vocabulary, and a table by id would not fit.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 22) - 1;

}  // namespace tenon
