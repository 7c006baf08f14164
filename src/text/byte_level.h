// GPT-2's table between bytes and printable characters: printable Latin-1 bytes stand for themselves, the
// other 68 for U+0100 and up in order (openai/gpt-2, encoder.py, bytes_to_unicode).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

// The character of a byte, below U+0144.
uint32_t byte_level_char(unsigned char byte);

// The byte of a character; -1 for a character outside the table.
int byte_level_byte(uint32_t character);

// Each byte as the UTF-8 form of its character.
std::string to_byte_level(std::string_view bytes);

// Nothing where a character is outside the table.
std::optional<std::string> from_byte_level(std::string_view text);

}  // namespace tenon
