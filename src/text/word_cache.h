// Remembers the tokens of short words: natural text repeats them, and a look-up costs a tenth of a merge.
// Direct mapped, one cache line an entry, fixed size; an entry is simply replaced. One a thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "text/model_token.h"

namespace tenon {

class WordCache {
 public:
  static constexpr size_t kMaxBytes = 31;
  static constexpr size_t kMaxTokens = 6;

  struct alignas(64) Entry {
    std::array<uint64_t, 4> key{};  // the word, zero-padded; its length in the top byte; 0 where unused
    std::array<int32_t, kMaxTokens> ids{};
    std::array<uint8_t, kMaxTokens> bytes{};
    uint8_t count = 0;
  };
  using Key = std::array<uint64_t, 4>;

  WordCache() : entries_(kEntries) {}

  // `word` has 1 to kMaxBytes bytes; `readable_end` is where reading past the word must stop.
  static Key make_key(std::string_view word, const char* readable_end) {
    Key key{};
    if (readable_end - word.data() >= 32) {
      std::memcpy(key.data(), word.data(), 32);
      const size_t whole = word.size() / 8;
      key[whole] &= (uint64_t{1} << (word.size() % 8 * 8)) - 1;
      for (size_t i = whole + 1; i < 4; ++i) key[i] = 0;
    } else {
      std::memcpy(key.data(), word.data(), word.size());
    }
    key[3] |= static_cast<uint64_t>(word.size()) << 56;
    return key;
  }

  // The entry of this key, or null.
  const Entry* find(const Key& key) const {
    const Entry& entry = entries_[slot_of(key)];
    return entry.key == key ? &entry : nullptr;
  }

  void insert(const Key& key, std::span<const ModelToken> tokens) {
    if (tokens.size() > kMaxTokens) return;
    Entry& entry = entries_[slot_of(key)];
    entry.key = key;
    entry.count = static_cast<uint8_t>(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      entry.ids[i] = tokens[i].id;
      entry.bytes[i] = static_cast<uint8_t>(tokens[i].bytes);
    }
  }

 private:
  static constexpr size_t kEntries = size_t{1} << 14;

  static size_t slot_of(const Key& key) {
    uint64_t hash = key[0] * 0x9e3779b97f4a7c15ull ^ key[1] * 0xc2b2ae3d27d4eb4full ^
                    key[2] * 0x165667b19e3779f9ull ^ key[3] * 0xd6e8feb86659fd93ull;
    hash ^= hash >> 32;
    return (hash * 0x9e3779b97f4a7c15ull) >> (64 - 14);
  }

  std::vector<Entry> entries_;
};

}  // namespace tenon
