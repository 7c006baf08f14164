// The format specifications of str, int and float, which "%" and format() share. Used by jinja_format.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja_runtime.h"

namespace tenon::jinja {

inline constexpr int64_t kMaxWidth = 100'000;

struct Spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '\0';  // + - or space, when given
  bool alternate = false;
  bool zero = false;
  int64_t width = 0;
  char grouping = '\0';
  int64_t precision = -1;
  char type = '\0';
};

// Digits at text[at...], which moves on; refuses more than kMaxWidth.
int64_t read_number(std::string_view text, size_t& at);
Spec parse_spec(std::string_view text, std::string_view type_of_value);
std::string pad(Runtime& runtime, const Spec& spec, const std::string& prefix, const std::string& body,
                char default_align);
std::string sign_text(bool negative, char sign);
std::string integer_digits(uint64_t value, int base, bool upper);
uint64_t magnitude(int64_t value);
// `name` is the Python type that errors speak of.
std::string format_real(Runtime& runtime, const Spec& spec, double value, std::string_view name);

}  // namespace tenon::jinja
