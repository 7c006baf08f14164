// Python's operators on values. Results past 64 bits, and strings or lists past the budget, are refused.
#pragma once

#include <string_view>

#include "text/jinja_value.h"

namespace tenon::jinja {

Value negate(const Value& value);
Value plus(const Value& value);
// op is one of + - * / // % **
Value binary_operation(Runtime& runtime, std::string_view op, const Value& left, const Value& right);
// op is one of == != < <= > >= in, "not in"
bool compare_operation(Runtime& runtime, std::string_view op, const Value& left, const Value& right);
bool contains(Runtime& runtime, const Value& container, const Value& item);

// Floor division and modulo of Python; the divisor is not 0.
int64_t floor_divide(int64_t a, int64_t b);
int64_t floor_modulo(int64_t a, int64_t b);

// Adds a string to another, escaping one if the other is markup.
Value add_strings(Runtime& runtime, const Value& left, const Value& right);
std::string escape_html(std::string_view text);
// The text for use beside markup: as it is if it is markup itself, else escaped.
std::string escaped_text(Runtime& runtime, const Value& value);

}  // namespace tenon::jinja
