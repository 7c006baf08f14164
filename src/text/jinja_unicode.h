// Text as Python's str sees it: code points over UTF-8 bytes. Character classes and case come from utf8proc,
// special casing (one letter to several) from a small table; the rules are those of Python 3's str methods.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::jinja {

bool is_ascii(std::string_view bytes);
bool is_utf8(std::string_view bytes);  // well formed, no surrogates
int64_t code_point_count(std::string_view bytes);

// Decodes at `offset` and moves it on; malformed bytes come back one by one.
uint32_t next_code_point(std::string_view bytes, size_t& offset);
void append_code_point(std::string& out, uint32_t code_point);
std::vector<uint32_t> to_code_points(std::string_view bytes);
std::string from_code_points(const std::vector<uint32_t>& code_points);

// The byte offset of the code point with this index; the size when past the end.
size_t byte_offset(std::string_view bytes, int64_t index);

bool is_space(uint32_t c);       // str.isspace
bool is_line_break(uint32_t c);  // what str.splitlines splits at
bool is_printable(uint32_t c);   // what repr() leaves as it is
bool is_alpha(uint32_t c);
bool is_decimal(uint32_t c);
bool is_digit(uint32_t c);
bool is_numeric(uint32_t c);
bool is_alnum(uint32_t c);
bool is_upper(uint32_t c);
bool is_lower(uint32_t c);
bool is_title(uint32_t c);
bool is_word(uint32_t c);  // \w of Python's re
bool is_identifier(std::string_view name);

std::string to_upper(std::string_view bytes);
std::string to_lower(std::string_view bytes);
std::string to_title(std::string_view bytes);
std::string to_capitalized(std::string_view bytes);
std::string swap_case(std::string_view bytes);
std::string case_fold(std::string_view bytes);

// Views without the leading or trailing white space (or characters of `chars`).
std::string_view strip_left(std::string_view bytes);
std::string_view strip_right(std::string_view bytes);
std::string_view strip_left(std::string_view bytes, std::string_view chars);
std::string_view strip_right(std::string_view bytes, std::string_view chars);

// The first place at or after `from`, and the last place, of a text in another; npos when there is none.
// Their time is linear in both sizes, since a template may choose both.
size_t find_text(std::string_view text, std::string_view wanted, size_t from = 0);
size_t rfind_text(std::string_view text, std::string_view wanted);

// repr() of a str, quotes included.
std::string quote(std::string_view bytes);

}  // namespace tenon::jinja
