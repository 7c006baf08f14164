// Remembers the tokens of short words: natural text repeats them, and a look-up costs a tenth of a merge.
// Direct mapped, fixed size (768 KiB, to stay in the second-level cache); an entry is simply replaced. One a
// thread at a time.
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

  struct Hit {
    const int32_t* ids = nullptr;
    const uint8_t* bytes = nullptr;  // of the word, by token
    size_t count = 0;
  };
  // The word, zero-padded, with its length in the last byte of the first two or of all four parts.
  using Key = std::array<uint64_t, 4>;

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
    key[word.size() <= Small::kBytes ? 1 : 3] |= static_cast<uint64_t>(word.size()) << 56;
    return key;
  }

  // Count 0 where the word is not there; words without tokens are not kept.
  Hit find(const Key& key) const {
    return is_small(key) ? look(small_[slot<kSmallBits>(key)], key)
                         : look(large_[slot<kLargeBits>(key)], key);
  }

  void insert(const Key& key, std::span<const ModelToken> tokens) {
    if (is_small(key)) {
      put(small_[slot<kSmallBits>(key)], key, tokens);
    } else {
      put(large_[slot<kLargeBits>(key)], key, tokens);
    }
  }

 private:
  template <size_t kParts, size_t kTokens>
  struct alignas(kParts * 16) Entry {
    static constexpr size_t kBytes = kParts * 8 - 1;
    std::array<uint64_t, kParts> key{};
    std::array<int32_t, kTokens> ids{};
    std::array<uint8_t, kTokens> bytes{};
    uint8_t count = 0;
  };
  using Small = Entry<2, 3>;
  using Large = Entry<4, 6>;
  static_assert(sizeof(Small) == 32 && sizeof(Large) == 64);
  static constexpr int kSmallBits = 14;
  static constexpr int kLargeBits = 12;

  static bool is_small(const Key& key) { return key[3] >> 56 == 0; }

  template <int kBits>
  static size_t slot(const Key& key) {
    uint64_t hash = key[0] * 0x9e3779b97f4a7c15ull ^ key[1] * 0xc2b2ae3d27d4eb4full ^
                    key[2] * 0x165667b19e3779f9ull ^ key[3] * 0xd6e8feb86659fd93ull;
    hash ^= hash >> 32;
    return (hash * 0x9e3779b97f4a7c15ull) >> (64 - kBits);
  }

  template <typename E>
  static Hit look(const E& entry, const Key& key) {
    for (size_t i = 0; i < entry.key.size(); ++i) {
      if (entry.key[i] != key[i]) return {};
    }
    return {entry.ids.data(), entry.bytes.data(), entry.count};
  }

  template <typename E>
  static void put(E& entry, const Key& key, std::span<const ModelToken> tokens) {
    if (tokens.size() > entry.ids.size()) return;
    std::memcpy(entry.key.data(), key.data(), sizeof entry.key);
    entry.count = static_cast<uint8_t>(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      entry.ids[i] = tokens[i].id;
      entry.bytes[i] = static_cast<uint8_t>(tokens[i].bytes);
    }
  }

  std::vector<Small> small_ = std::vector<Small>(size_t{1} << kSmallBits);
  std::vector<Large> large_ = std::vector<Large>(size_t{1} << kLargeBits);
};

}  // namespace tenon
