// Numbers and strings as they are written in a template, and how Python prints a float.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::jinja {

// The end of the number that starts at `begin`; scan_real gives 0 when there is none. `begin` is at a digit.
size_t scan_integer(std::string_view source, size_t begin);
size_t scan_real(std::string_view source, size_t begin);

// Nothing when it does not fit 64 bits.
std::optional<int64_t> parse_integer_literal(std::string_view text);
double parse_real_literal(std::string_view text);

// int(text, base) and float(text) of Python; nothing when Python raises ValueError. `overflow` is set when
// the text is an integer past 64 bits.
std::optional<int64_t> parse_integer(std::string_view text, int base, bool& overflow);
std::optional<double> parse_real(std::string_view text);

// The body of a string literal with Python's escapes resolved; nothing (and `problem`) when one is malformed.
std::optional<std::string> unescape_literal(std::string_view body, std::string& problem);

// Marks that the lexer takes into a name besides \w.
bool is_name_mark(uint32_t c);

// repr() of a float: the shortest digits that read back the same.
std::string real_text(double value);

}  // namespace tenon::jinja
