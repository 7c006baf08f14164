// Scanning and printing of numbers, and the escapes of string literals (Python's unicode-escape codec).
#include "text/jinja_literal.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

char at(std::string_view text, size_t i) {
  return i < text.size() ? text[i] : '\0';
}

// One or more digits of `base`, each with an underscore before it if it wants; 0 when there are none.
size_t scan_digits(std::string_view source, size_t begin, int base, bool leading_underscore) {
  size_t end = begin;
  bool any = false;
  while (true) {
    size_t p = end;
    if (at(source, p) == '_' && (any || leading_underscore)) ++p;
    if (digit_value(at(source, p)) >= base) break;
    end = p + 1;
    any = true;
  }
  return any ? end : 0;
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != '_') out += c;
  }
  return out;
}

std::optional<int64_t> accumulate(std::string_view digits, int base, bool negative) {
  int64_t value = 0;
  for (char c : digits) {
    const int digit = negative ? -digit_value(c) : digit_value(c);
    if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value)) {
      return std::nullopt;
    }
  }
  return value;
}

// ASCII digits for other decimal digits, and what is stripped by Python before a number is read.
std::string ascii_number(std::string_view text) {
  const auto inner = strip_right(strip_left(text));
  std::string out;
  for (size_t offset = 0; offset < inner.size();) {
    const uint32_t c = next_code_point(inner, offset);
    if (c >= 0x80 && is_decimal(c)) {
      // The digits of a script are ten code points in a row that start at its zero.
      int value = 0;
      while (value < 9 && is_decimal(c - static_cast<uint32_t>(value) - 1)) ++value;
      out += static_cast<char>('0' + value);
    } else {
      append_code_point(out, c);
    }
  }
  return out;
}

// Underscores are legal only between digits.
bool bad_underscores(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') continue;
    if (i == 0 || digit_value(text[i - 1]) > 36 || digit_value(at(text, i + 1)) > 36) return true;
  }
  return false;
}

int prefix_base(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 0;
  switch (lower(text[1])) {
    case 'x':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return 0;
  }
}

void append_hex_escape(std::string& out, uint32_t c) {
  if (c < 0x100) {
    out += fmt::format("\\x{:02x}", c);
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", c);
  } else {
    out += fmt::format("\\U{:08x}", c);
  }
}

class Unescaper {
 public:
  Unescaper(std::string_view body, std::string& problem) : body_(body), problem_(problem) {}

  std::optional<std::string> run() {
    while (pos_ < body_.size()) {
      if (body_[pos_] != '\\') {
        out_ += body_[pos_++];
        continue;
      }
      ++pos_;
      if (!escape()) return std::nullopt;
    }
    return std::move(out_);
  }

 private:
  bool hex(int digits, std::string_view name) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = digit_value(at(body_, pos_));
      if (digit >= 16) {
        problem_ = fmt::format("truncated {} escape", name);
        return false;
      }
      value = value * 16 + static_cast<uint32_t>(digit);
      ++pos_;
    }
    if (value > 0x10ffff) {
      problem_ = "illegal Unicode character";
      return false;
    }
    if (value >= 0xd800 && value < 0xe000) {
      problem_ = "a string holds half of a surrogate pair, which UTF-8 cannot";
      return false;
    }
    append_code_point(out_, value);
    return true;
  }

  void octal(char first) {
    uint32_t value = static_cast<uint32_t>(first - '0');
    for (int i = 0; i < 2 && at(body_, pos_) >= '0' && at(body_, pos_) <= '7'; ++i) {
      value = value * 8 + static_cast<uint32_t>(body_[pos_++] - '0');
    }
    append_code_point(out_, value);
  }

  bool escape() {
    const size_t start = pos_;
    const uint32_t c = next_code_point(body_, pos_);
    switch (c) {
      case '\n':
        return true;
      case '\\':
      case '\'':
      case '"':
        out_ += static_cast<char>(c);
        return true;
      case 'a':
        out_ += '\a';
        return true;
      case 'b':
        out_ += '\b';
        return true;
      case 'f':
        out_ += '\f';
        return true;
      case 'n':
        out_ += '\n';
        return true;
      case 'r':
        out_ += '\r';
        return true;
      case 't':
        out_ += '\t';
        return true;
      case 'v':
        out_ += '\v';
        return true;
      case 'x':
        return hex(2, "\\xXX");
      case 'u':
        return hex(4, "\\uXXXX");
      case 'U':
        return hex(8, "\\UXXXXXXXX");
      case 'N':
        problem_ = "escapes by character name are not supported";
        return false;
      default:
        break;
    }
    if (c >= '0' && c <= '7') {
      octal(static_cast<char>(c));
    } else if (c < 0x80) {
      out_ += '\\';
      out_ += body_.substr(start, pos_ - start);
    } else {
      // jinja2 turns other letters into escapes first, so a backslash before one escapes that escape.
      append_hex_escape(out_, c);
    }
    return true;
  }

  std::string_view body_;
  std::string& problem_;
  size_t pos_ = 0;
  std::string out_;
};

}  // namespace

size_t scan_integer(std::string_view source, size_t begin) {
  if (source[begin] == '0') {
    const int base = prefix_base(source.substr(begin, 2));
    if (base != 0) {
      const size_t end = scan_digits(source, begin + 2, base, true);
      if (end != 0) return end;
    }
    size_t end = begin + 1;
    while (at(source, end) == '0' || (at(source, end) == '_' && at(source, end + 1) == '0')) {
      end += source[end] == '0' ? 1 : 2;
    }
    return end;
  }
  return scan_digits(source, begin, 10, false);
}

size_t scan_real(std::string_view source, size_t begin) {
  const size_t whole = scan_digits(source, begin, 10, false);
  if (whole == 0) return 0;
  size_t end = whole;
  bool real = false;
  if (at(source, end) == '.') {
    const size_t fraction = scan_digits(source, end + 1, 10, false);
    if (fraction != 0) {
      end = fraction;
      real = true;
    }
  }
  if (lower(at(source, end)) == 'e') {
    size_t p = end + 1;
    if (at(source, p) == '+' || at(source, p) == '-') ++p;
    const size_t exponent = scan_digits(source, p, 10, false);
    if (exponent != 0) {
      end = exponent;
      real = true;
    }
  }
  return real ? end : 0;
}

std::optional<int64_t> parse_integer_literal(std::string_view text) {
  const std::string plain = without_underscores(text);
  const int base = prefix_base(plain);
  return base != 0 ? accumulate(std::string_view(plain).substr(2), base, false)
                   : accumulate(plain, 10, false);
}

double parse_real_literal(std::string_view text) {
  return std::strtod(without_underscores(text).c_str(), nullptr);
}

std::optional<int64_t> parse_integer(std::string_view text, int base, bool& overflow) {
  overflow = false;
  const std::string number = ascii_number(text);
  std::string_view rest = number;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  const int prefix = prefix_base(rest);
  if (base == 0 && prefix == 0 && rest.size() > 1 && rest[0] == '0' &&
      rest.find_first_not_of("0_") != std::string_view::npos) {
    return std::nullopt;
  }
  if (prefix != 0 && (base == prefix || base == 0)) {
    base = prefix;
    rest.remove_prefix(2);
    if (!rest.empty() && rest[0] == '_') rest.remove_prefix(1);
  }
  if (base == 0) base = 10;
  if (rest.empty() || bad_underscores(rest)) return std::nullopt;
  const std::string digits = without_underscores(rest);
  for (char c : digits) {
    if (digit_value(c) >= base) return std::nullopt;
  }
  auto value = accumulate(digits, base, negative);
  overflow = !value;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  const std::string number = ascii_number(text);
  if (number.empty() || bad_underscores(number)) return std::nullopt;
  std::string plain;
  for (char c : number) {
    if (c != '_') plain += lower(c);
  }
  std::string_view body = plain;
  if (body[0] == '+' || body[0] == '-') body.remove_prefix(1);
  if (body == "inf" || body == "infinity" || body == "nan") {
    const double value =
        body == "nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    return plain[0] == '-' ? -value : value;
  }
  if (body.empty() || body.find_first_not_of("0123456789.e+-") != std::string_view::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  if (end != plain.c_str() + plain.size()) return std::nullopt;
  return value;
}

std::optional<std::string> unescape_literal(std::string_view body, std::string& problem) {
  return Unescaper(body, problem).run();
}

bool is_name_mark(uint32_t c) {
  if (c < 0x80) return false;
  std::string name = "a";
  append_code_point(name, c);
  return is_identifier(name);
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64] = {};
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  const size_t mark = text.find('e');
  const int exponent = std::atoi(text.data() + mark + 1);
  std::string digits;
  std::string out;
  for (char c : text.substr(0, mark)) {
    if (c == '-') out = "-";
    if (c >= '0' && c <= '9') digits += c;
  }
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent + 1)) + "." +
         digits.substr(static_cast<size_t>(exponent + 1));
}

}  // namespace tenon::jinja
