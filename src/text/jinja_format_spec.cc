// Sign, digits, grouping and padding.
#include "text/jinja_format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja_format.h"
#include "text/jinja_literal.h"
#include "text/jinja_methods.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

// Digits of the whole part, which separators stand in.
size_t whole_digits(const std::string& digits, size_t group) {
  const size_t end = digits.find_first_not_of(group == 3 ? "0123456789" : "0123456789abcdefABCDEF");
  return end == std::string::npos ? digits.size() : end;
}

// Puts a separator between groups of digits in the whole part of `digits`.
std::string grouped(const std::string& digits, char separator, size_t group) {
  const size_t whole = whole_digits(digits, group);
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i != 0 && (whole - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

// With "0" padding the zeros are grouped as well.
std::string zero_grouped(const Spec& spec, const std::string& prefix, std::string digits, size_t group) {
  if (spec.fill == "0" && spec.align == '=') {
    const size_t before = whole_digits(digits, group), rest = prefix.size() + digits.size() - before;
    const auto size_of = [&](size_t whole) { return rest + whole + (whole == 0 ? 0 : (whole - 1) / group); };
    size_t whole = before;
    while (static_cast<int64_t>(size_of(whole)) < spec.width) ++whole;
    digits.insert(0, whole - before, '0');
  }
  return grouped(digits, spec.grouping, group);
}

std::string c_format(double value, char type, int64_t precision, bool alternate) {
  const std::string pattern = std::string("%") + (alternate ? "#" : "") + ".*" + type;
  char small[512];
  const int size = std::snprintf(small, sizeof(small), pattern.c_str(), static_cast<int>(precision), value);
  if (size < static_cast<int>(sizeof(small)))
    return std::string(small, static_cast<size_t>(std::max(size, 0)));
  std::string out(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), pattern.c_str(), static_cast<int>(precision), value);
  out.pop_back();
  return out;
}

// %g by its rule in C, since the C library's own %#g errs where rounding adds a digit. `bare` is Python's
// format without a type, which keeps a digit after the point and so turns to an exponent one digit sooner.
std::string general_digits(double value, int64_t precision, bool alternate, bool bare) {
  precision = std::max<int64_t>(precision, 1);
  std::string out = c_format(value, 'e', precision - 1, alternate);
  const size_t mark = out.find('e');
  const int64_t exponent = std::atoi(out.c_str() + mark + 1);
  std::string tail = out.substr(mark);
  if (exponent >= -4 && exponent + 1 <= precision - (bare ? 1 : 0)) {
    out = c_format(value, 'f', precision - 1 - exponent, alternate);
    tail.clear();
  } else {
    out.resize(mark);
  }
  if (!alternate && out.find('.') != std::string::npos) {
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
  }
  if (bare && tail.empty() && out.find('.') == std::string::npos) out += ".0";
  if (bare && tail.empty() && out.back() == '.') out += "0";
  return out + tail;
}

std::string repr_digits(double value, bool alternate) {
  std::string out = real_text(value);
  if (alternate && out.find('.') == std::string::npos) out.insert(out.find('e'), ".");
  return out;
}

std::string upper_text(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return text;
}

std::string real_digits(const Spec& spec, double value) {
  if (!std::isfinite(value)) {
    const std::string text = std::isnan(value) ? "nan" : "inf";
    if (spec.type == '%') return text + "%";
    return spec.type == 'E' || spec.type == 'F' || spec.type == 'G' ? upper_text(text) : text;
  }
  const int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  switch (spec.type) {
    case '\0':
      return spec.precision < 0 ? repr_digits(value, spec.alternate)
                                : general_digits(value, precision, spec.alternate, true);
    case '%':
      return c_format(value * 100, 'f', precision, spec.alternate) + "%";
    case 'n':
    case 'g':
      return general_digits(value, precision, spec.alternate, false);
    case 'G':
      return upper_text(general_digits(value, precision, spec.alternate, false));
    default:
      return c_format(value, spec.type, precision, spec.alternate);
  }
}

std::string format_integer(Runtime& runtime, const Spec& spec, int64_t value) {
  if (spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos) {
    return format_real(runtime, spec, static_cast<double>(value), "int");
  }
  if (spec.precision >= 0) fail_value("Precision not allowed in integer format specifier");
  if (spec.grouping != '\0' && (spec.type == 'c' || spec.type == 'n')) {
    fail_value(fmt::format("Cannot specify '{}' with '{}'.", spec.grouping, spec.type));
  }
  if (spec.type == 'c') {
    if (spec.sign != '\0') fail_value("Sign not allowed with integer format specifier 'c'");
    if (value < 0 || value > 0x10ffff) fail("OverflowError", "%c arg not in range(0x110000)");
    std::string text;
    append_code_point(text, static_cast<uint32_t>(value));
    return pad(runtime, spec, "", text, '>');
  }
  int base = 10;
  std::string base_prefix;
  switch (spec.type) {
    case '\0':
    case 'd':
    case 'n':
      break;
    case 'b':
      base = 2;
      base_prefix = "0b";
      break;
    case 'o':
      base = 8;
      base_prefix = "0o";
      break;
    case 'x':
      base = 16;
      base_prefix = "0x";
      break;
    case 'X':
      base = 16;
      base_prefix = "0X";
      break;
    default:
      fail_value(fmt::format("Unknown format code '{}' for object of type 'int'", spec.type));
  }
  const std::string prefix = sign_text(value < 0, spec.sign) + (spec.alternate ? base_prefix : "");
  std::string digits = integer_digits(magnitude(value), base, spec.type == 'X');
  if (spec.grouping == ',' && base != 10) fail_value(fmt::format("Cannot specify ',' with '{}'.", spec.type));
  if (spec.grouping != '\0') digits = zero_grouped(spec, prefix, digits, base == 10 ? 3 : 4);
  return pad(runtime, spec, prefix, digits, '>');
}

std::string format_text(Runtime& runtime, const Spec& spec, std::string_view text) {
  if (spec.type != '\0' && spec.type != 's') {
    fail_value(fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
  }
  if (spec.sign != '\0') fail_value("Sign not allowed in string format specifier");
  if (spec.alternate) fail_value("Alternate form (#) not allowed in string format specifier");
  if (spec.grouping != '\0') fail_value(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  if (spec.align == '=' && !spec.zero) fail_value("'=' alignment not allowed in string format specifier");
  Spec used = spec;
  if (used.align == '=') used.align = '\0';
  if (spec.precision >= 0) text = text.substr(0, byte_offset(text, spec.precision));
  return pad(runtime, used, "", std::string(text), '<');
}

}  // namespace

int64_t read_number(std::string_view text, size_t& at) {
  int64_t out = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    out = out * 10 + (text[at++] - '0');
    if (out > kMaxWidth) fail_budget("a format asks for too many characters");
  }
  return out;
}

Spec parse_spec(std::string_view text, std::string_view type_of_value) {
  Spec out;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  size_t after_fill = 0;
  bool fill_given = false;
  if (!text.empty()) next_code_point(text, after_fill);
  if (after_fill > 0 && after_fill < text.size() && is_align(text[after_fill])) {
    out.fill = std::string(text.substr(0, after_fill));
    fill_given = true;
    out.align = text[after_fill];
    at = after_fill + 1;
  } else if (is_align(peek())) {
    out.align = text[at++];
  }
  if (peek() == '+' || peek() == '-' || peek() == ' ') out.sign = text[at++];
  if (peek() == '#') {
    out.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    out.zero = true;
    if (!fill_given) out.fill = "0";
    if (out.align == '\0') out.align = '=';
    ++at;
  }
  out.width = read_number(text, at);
  if (peek() == ',' || peek() == '_') out.grouping = text[at++];
  if (peek() == '.') {
    ++at;
    if (peek() < '0' || peek() > '9') fail_value("Format specifier missing precision");
    out.precision = read_number(text, at);
  }
  if (at < text.size()) out.type = text[at++];
  if (at != text.size()) {
    fail_value(fmt::format("Invalid format specifier '{}' for object of type '{}'", text, type_of_value));
  }
  return out;
}

std::string pad(Runtime& runtime, const Spec& spec, const std::string& prefix, const std::string& body,
                char default_align) {
  const int64_t size = static_cast<int64_t>(prefix.size()) + code_point_count(body);
  const int64_t space = std::max<int64_t>(spec.width - size, 0);
  const char align = spec.align != '\0' ? spec.align : default_align;
  if (align == '=') return prefix + pad_text(runtime, body, space, 0, spec.fill);
  const int64_t left = align == '<' ? 0 : align == '^' ? space / 2 : space;
  return pad_text(runtime, prefix + body, left, space - left, spec.fill);
}

std::string sign_text(bool negative, char sign) {
  if (negative) return "-";
  return sign == '-' || sign == '\0' ? "" : std::string(1, sign);
}

std::string integer_digits(uint64_t value, int base, bool upper) {
  const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), digits[value % static_cast<uint64_t>(base)]);
    value /= static_cast<uint64_t>(base);
  } while (value != 0);
  return out;
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

std::string format_real(Runtime& runtime, const Spec& spec, double value, std::string_view name) {
  if (std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos && spec.type != '\0') {
    fail_value(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type, name));
  }
  if (spec.grouping != '\0' && spec.type == 'n')
    fail_value(fmt::format("Cannot specify '{}' with 'n'.", spec.grouping));
  const std::string prefix = sign_text(std::signbit(value) && !std::isnan(value), spec.sign);
  std::string digits = real_digits(spec, std::fabs(value));
  if (spec.grouping != '\0') digits = zero_grouped(spec, prefix, digits, 3);
  return pad(runtime, spec, prefix, digits, '>');
}

std::string format_value(Runtime& runtime, const Value& value, std::string_view spec_text) {
  if (value.is(Kind::undefined) && !spec_text.empty()) {
    fail_type("unsupported format string passed to Undefined.__format__");
  }
  if (spec_text.empty()) return to_text(runtime, value);
  if (!value.is_string() && !value.is_number()) {
    fail_type(fmt::format("unsupported format string passed to {}.__format__", type_name(value)));
  }
  const Spec spec = parse_spec(spec_text, type_name(value));
  if (value.is_string()) return format_text(runtime, spec, value.text());
  if (value.is(Kind::real)) return format_real(runtime, spec, value.as_real(), "float");
  return format_integer(runtime, spec, value.as_integer());
}

}  // namespace tenon::jinja
