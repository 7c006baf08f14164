#include "text/byte_level.h"

#include <array>

#include "text/unicode.h"

namespace tenon {
namespace {

constexpr bool is_printable(unsigned c) {
  return (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

constexpr std::array<uint16_t, 256> make_chars() {
  std::array<uint16_t, 256> chars{};
  uint16_t next = 256;
  for (unsigned c = 0; c < 256; ++c) chars[c] = is_printable(c) ? static_cast<uint16_t>(c) : next++;
  return chars;
}

constexpr std::array<uint16_t, 256> kChars = make_chars();

constexpr std::array<int16_t, 0x144> make_bytes() {
  std::array<int16_t, 0x144> bytes{};
  for (auto& b : bytes) b = -1;
  for (unsigned c = 0; c < 256; ++c) bytes[kChars[c]] = static_cast<int16_t>(c);
  return bytes;
}

constexpr std::array<int16_t, 0x144> kBytes = make_bytes();

}  // namespace

uint32_t byte_level_char(unsigned char byte) {
  return kChars[byte];
}

int byte_level_byte(uint32_t character) {
  return character < kBytes.size() ? kBytes[character] : -1;
}

std::string to_byte_level(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) append_char(out, kChars[byte]);
  return out;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string out;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const Char c = decode_char(p, end);
    const int byte = byte_level_byte(c.value);
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    p += c.bytes;
  }
  return out;
}

}  // namespace tenon
