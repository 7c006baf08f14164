// The model's vocabulary: token text <-> id. One buffer for all texts and one flat hash table. Not added
// tokens (text/added_tokens.h).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class Vocabulary {
 public:
  void reserve(size_t tokens, size_t text_bytes);

  // Gives `id` >= 0 the text. False where the id is taken. A text given twice keeps the id given last, as in
  // a JSON object; the older id keeps its text.
  bool add(std::string_view text, int32_t id) { return add_entry(text, id, true); }

  // The same, but find() does not give it: a token that no text becomes.
  bool add_unfindable(std::string_view text, int32_t id) { return add_entry(text, id, false); }

  // Makes the text of this id stand for this id again, where another id has the same text.
  void prefer(int32_t id);

  // -1 where it is no token.
  int32_t find(std::string_view text) const { return find(probe(text)); }

  // find() in two halves: what probe() starts to fetch from memory, find() reads. For many look-ups at once.
  struct Probe {
    std::string_view text;
    uint64_t print = 0;
    size_t at = 0;
  };
  Probe probe(std::string_view text) const {
    const uint64_t print = print_of(text);
    const size_t at = (print * kMul) >> shift_;
    __builtin_prefetch(&slots_[at]);
    return {text, print, at};
  }
  int32_t find(const Probe& probe) const {
    for (size_t at = probe.at;; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.id < 0) return -1;
      if (slot.print == probe.print && (is_exact(probe.print) || same(slot, probe.text))) return slot.id;
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
  static constexpr uint64_t kMul = 0x9e3779b97f4a7c15ull;
  static constexpr uint64_t kLong = uint64_t{1} << 63;

  struct Slot {
    uint64_t print = 0;
    int32_t id = -1;
    uint32_t begin = 0;  // in texts_
  };
  struct Span {
    uint32_t begin = 0;
    uint32_t size = 0;
    bool used = false;
    bool findable = false;
  };

  // A text of up to 7 bytes is its own fingerprint, its size in the top byte: most tokens are found in one
  // cache line. Longer ones are mixed 8 bytes at a time and keep a size of up to 126 in the top byte.
  static uint64_t print_of(std::string_view text) {
    uint64_t word = 0;
    if (text.empty()) return 0;
    if (text.size() <= 7) {
      std::memcpy(&word, text.data(), text.size());
      return word | static_cast<uint64_t>(text.size()) << 56;
    }
    uint64_t hash = 0;
    const char* p = text.data();
    size_t left = text.size();
    for (; left > 8; p += 8, left -= 8) {
      std::memcpy(&word, p, 8);
      hash = (hash ^ word) * kMul;
      hash ^= hash >> 32;
    }
    std::memcpy(&word, text.data() + text.size() - 8, 8);
    hash = (hash ^ word) * kMul;
    hash ^= hash >> 32;
    const uint64_t size = text.size() < 127 ? text.size() : 127;
    return (hash & 0x00ffffffffffffffull) | size << 56 | kLong;
  }
  static bool is_exact(uint64_t print) { return print < kLong; }
  bool same(const Slot& slot, std::string_view text) const {
    return (text.size() < 127 || spans_[static_cast<size_t>(slot.id)].size == text.size()) &&
           std::memcmp(texts_.data() + slot.begin, text.data(), text.size()) == 0;
  }

  bool add_entry(std::string_view text, int32_t id, bool findable);
  void grow(size_t capacity);
  void point(int32_t id);

  std::string texts_;  // below 4 GiB
  std::vector<Span> spans_;
  std::vector<Slot> slots_ = std::vector<Slot>(2);  // a power of two, half of them empty
  int shift_ = 63;
  int32_t count_ = 0;
};

// Ids in files above this are refused: no model has such a vocabulary, and a table by id would not fit.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 22) - 1;

}  // namespace tenon
