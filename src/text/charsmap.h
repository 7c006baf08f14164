// SentencePiece's precompiled character map: a double-array trie from text to offsets in a block of
// replacement strings (sentencepiece/src/normalizer.cc; the array layout is that of darts-clone).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon {

class Charsmap {
 public:
  Charsmap() = default;  // maps nothing

  // `bytes`: the size of the array in bytes (u32, little-endian), the array, the strings. Error: bad_file.
  static Result<Charsmap> parse(std::string_view bytes);

  bool empty() const { return units_.empty(); }

  struct Match {
    size_t bytes = 0;              // of the text
    std::string_view replacement;  // views the map
  };
  // The longest entry that `text` begins with.
  std::optional<Match> longest(std::string_view text) const;
  // The shortest one: tokenizers looks characters and graphemes up so.
  std::optional<Match> shortest(std::string_view text) const;

 private:
  std::string_view replacement(uint32_t offset) const;
  template <typename F>
  void walk(std::string_view text, F&& found) const;

  std::vector<uint32_t> units_;
  std::string strings_;
};

}  // namespace tenon
