// UTF-8 and the character classes tokenizers ask about. Classes follow Unicode's general categories
// (utf8proc's, and Unicode 16 where that is newer); `space` is the property White_Space. Text may hold
// invalid bytes anywhere: each one counts as one character with the class of U+FFFD and the value
// kInvalidByte + byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

using CharClass = uint16_t;

inline constexpr CharClass kLetter = 1;          // L
inline constexpr CharClass kMark = 2;            // M
inline constexpr CharClass kNumber = 4;          // N
inline constexpr CharClass kPunctuation = 8;     // P
inline constexpr CharClass kSymbol = 16;         // S
inline constexpr CharClass kSpace = 32;          // White_Space
inline constexpr CharClass kNewline = 64;        // CR, LF
inline constexpr CharClass kUpperish = 128;      // Lu Lt Lm Lo M
inline constexpr CharClass kLowerish = 256;      // Ll Lm Lo M
inline constexpr CharClass kOther = 512;         // C
inline constexpr CharClass kWord = 1024;         // \w of UTS 18: Alphabetic, M, Nd, Pc, Join_Control
inline constexpr CharClass kAsciiLetter = 2048;  // A-Z a-z
inline constexpr CharClass kNonspacing = 4096;   // Mn

inline constexpr uint32_t kInvalidByte = 0x110000;

struct Char {
  uint32_t value = 0;
  int bytes = 0;
  bool valid() const { return value < kInvalidByte; }
};

// The character at `p` < `end`.
inline Char decode_char(const char* p, const char* end) {
  const auto* s = reinterpret_cast<const unsigned char*>(p);
  const uint32_t lead = s[0];
  if (lead < 0x80) return {lead, 1};
  const auto left = end - p;
  const auto tail = [&](int i) { return (s[i] & 0xc0) == 0x80; };
  if (lead >= 0xc2 && lead < 0xe0) {
    if (left >= 2 && tail(1)) return {(lead & 0x1f) << 6 | (s[1] & 0x3fu), 2};
  } else if (lead >= 0xe0 && lead < 0xf0) {
    if (left >= 3 && tail(1) && tail(2)) {
      const uint32_t value = (lead & 0xf) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
      if (value >= 0x800 && (value < 0xd800 || value > 0xdfff)) return {value, 3};
    }
  } else if (lead >= 0xf0 && lead < 0xf5) {
    if (left >= 4 && tail(1) && tail(2) && tail(3)) {
      const uint32_t value = (lead & 7) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
      if (value >= 0x10000 && value < 0x110000) return {value, 4};
    }
  }
  return {kInvalidByte + lead, 1};
}

// The character that ends at text[end], end > 0.
Char char_before(std::string_view text, size_t end);

// Appends the UTF-8 form (or the byte of an invalid byte's value).
void append_char(std::string& out, uint32_t value);

bool is_valid_utf8(std::string_view text);
bool is_ascii(std::string_view text);

// Bytes at the end of `text` that could be the start of a character still to be completed.
size_t incomplete_tail(std::string_view text);

// Appends `text` with each maximal ill-formed subsequence as one U+FFFD (Unicode 15, section 3.9).
void append_lossy(std::string& out, std::string_view text);

// Two-stage table over all code points; about 100 KB, built once in a few milliseconds.
class CharClasses {
 public:
  static const CharClasses& get();

  CharClass of(uint32_t value) const {
    if (value < 128) return ascii_[value];
    if (value >= kInvalidByte) value = 0xfffd;
    return classes_[static_cast<size_t>(blocks_[value >> 8]) << 8 | (value & 255)];
  }
  CharClass ascii(unsigned char c) const { return ascii_[c]; }

 private:
  CharClasses();

  std::array<CharClass, 128> ascii_{};
  std::array<uint16_t, 0x1100> blocks_{};
  std::vector<CharClass> classes_;
};

// Rust's char::is_control: category Cc.
inline bool is_control(uint32_t value) {
  return value < 32 || (value >= 127 && value < 160);
}

}  // namespace tenon
