// Format specifications, shared by both ways: sign, digits, grouping, padding.
#include "text/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja_arguments.h"
#include "text/jinja_literal.h"
#include "text/jinja_members.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

constexpr int64_t kMaxWidth = 100'000;

struct Spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  int64_t width = 0;
  char grouping = '\0';
  int64_t precision = -1;
  char type = '\0';
};

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
  if (!text.empty()) next_code_point(text, after_fill);
  if (after_fill > 0 && after_fill < text.size() && is_align(text[after_fill])) {
    out.fill = std::string(text.substr(0, after_fill));
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
    if (out.align == '\0') {
      out.align = '=';
      out.fill = "0";
    }
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

// Puts a separator between groups of digits in the whole part of `digits`.
std::string grouped(const std::string& digits, char separator, size_t group) {
  size_t whole = digits.find_first_not_of("0123456789abcdefABCDEF");
  if (group == 3) whole = digits.find_first_not_of("0123456789");
  if (whole == std::string::npos) whole = digits.size();
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i != 0 && (whole - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

// With "0" padding the zeros are grouped as well.
std::string zero_grouped(const Spec& spec, const std::string& prefix, std::string digits, size_t group) {
  std::string out = grouped(digits, spec.grouping, group);
  if (spec.fill != "0" || spec.align != '=') return out;
  while (static_cast<int64_t>(prefix.size() + out.size()) < spec.width) {
    digits.insert(digits.begin(), '0');
    out = grouped(digits, spec.grouping, group);
  }
  return out;
}

std::string sign_text(bool negative, char sign) {
  if (negative) return "-";
  return sign == '-' ? "" : std::string(1, sign);
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

std::string real_digits(const Spec& spec, double value) {
  const bool upper = spec.type == 'E' || spec.type == 'F' || spec.type == 'G';
  if (!std::isfinite(value))
    return upper ? (std::isnan(value) ? "NAN" : "INF") : (std::isnan(value) ? "nan" : "inf");
  const int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  switch (spec.type) {
    case '\0': {
      if (spec.precision < 0) return real_text(value);
      // Like g, but with at least one digit after the point.
      std::string out = c_format(value, 'g', std::max<int64_t>(precision, 1), spec.alternate);
      const double exponent = value == 0 ? 0 : std::floor(std::log10(value));
      if (out.find_first_of(".e") == std::string::npos && exponent >= static_cast<double>(precision) - 1 &&
          precision > 0 && exponent + 1 >= static_cast<double>(precision)) {
        return c_format(value, 'e', std::max<int64_t>(precision - 1, 0), spec.alternate);
      }
      return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
    }
    case 'n':
      return c_format(value, 'g', std::max<int64_t>(precision, 1), spec.alternate);
    case '%':
      return c_format(value * 100, 'f', precision, spec.alternate) + "%";
    case 'g':
    case 'G':
      return c_format(value, spec.type, precision == 0 ? 1 : precision, spec.alternate);
    default:
      return c_format(value, spec.type, precision, spec.alternate);
  }
}

std::string format_real(Runtime& runtime, const Spec& spec, double value, std::string_view name) {
  if (std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos && spec.type != '\0') {
    fail_value(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type, name));
  }
  const std::string prefix = sign_text(std::signbit(value) && !std::isnan(value), spec.sign);
  std::string digits = real_digits(spec, std::fabs(value));
  if (spec.grouping != '\0') digits = zero_grouped(spec, prefix, digits, 3);
  return pad(runtime, spec, prefix, digits, '>');
}

std::string format_integer(Runtime& runtime, const Spec& spec, int64_t value) {
  if (spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos) {
    return format_real(runtime, spec, static_cast<double>(value), "int");
  }
  if (spec.precision >= 0) fail_value("Precision not allowed in integer format specifier");
  if (spec.type == 'c') {
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
  if (spec.sign != '-') fail_value("Sign not allowed in string format specifier");
  if (spec.alternate) fail_value("Alternate form (#) not allowed in string format specifier");
  if (spec.grouping != '\0') fail_value(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  if (spec.align == '=' && !spec.zero) fail_value("'=' alignment not allowed in string format specifier");
  Spec used = spec;
  if (used.align == '=') used.align = '\0';
  if (spec.precision >= 0) text = text.substr(0, byte_offset(text, spec.precision));
  return pad(runtime, used, "", std::string(text), '<');
}

// "%..." of the printf style.
class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Value& format, const Value& values)
      : runtime_(runtime), text_(format.text()), markup_(format.as<Text>().markup), values_(values) {}

  std::string run() {
    while (at_ < text_.size()) {
      const size_t percent = std::min(text_.find('%', at_), text_.size());
      out_ += text_.substr(at_, percent - at_);
      at_ = percent;
      if (at_ < text_.size()) conversion();
      runtime_.check_string(static_cast<int64_t>(out_.size()));
      runtime_.charge(1);
    }
    const bool tuple = values_.is(Kind::tuple);
    const size_t count = tuple ? values_.as<Items>().values.size() : 1;
    // A mapping (and a list, to Python) may be left unused.
    if (used_ < count &&
        (tuple || !(values_.is(Kind::dict) || values_.is(Kind::list) || values_.is_undefined()))) {
      fail_type("not all arguments converted during string formatting");
    }
    return std::move(out_);
  }

 private:
  const Value& next_value() {
    if (values_.is(Kind::tuple)) {
      const auto& values = values_.as<Items>().values;
      if (used_ >= values.size()) fail_type("not enough arguments for format string");
      return values[used_++];
    }
    if (used_++ > 0) fail_type("not enough arguments for format string");
    return values_;
  }

  int64_t number() {
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      const Value& value = next_value();
      if (!value.is_integral()) fail_type("* wants int");
      if (std::abs(value.as_integer()) > kMaxWidth) fail_budget("a format asks for too many characters");
      return value.as_integer();
    }
    return read_number(text_, at_);
  }

  const Value& keyed() {
    const size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) fail_value("incomplete format key");
    if (!values_.is(Kind::dict)) fail_type("format requires a mapping");
    const std::string_view key = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    const Value* value = find(values_, key);
    if (value == nullptr) fail("KeyError", quote(key));
    return *value;
  }

  void conversion() {
    ++at_;
    const Value* value = nullptr;
    if (at_ < text_.size() && text_[at_] == '(') value = &keyed();
    Spec spec;
    bool left = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '-') {
        left = true;
      } else if (c == '+' || (c == ' ' && spec.sign != '+')) {
        spec.sign = c;
      } else if (c == '#') {
        spec.alternate = true;
      } else if (c == '0') {
        spec.zero = true;
      } else if (c != ' ') {
        break;
      }
    }
    spec.width = number();
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      spec.precision = std::max<int64_t>(number(), 0);
    }
    while (at_ < text_.size() && (text_[at_] == 'h' || text_[at_] == 'l' || text_[at_] == 'L')) ++at_;
    if (at_ >= text_.size()) fail_value("incomplete format");
    spec.type = text_[at_++];
    if (spec.type == '%') {
      out_ += '%';
      return;
    }
    spec.align = left ? '<' : '>';
    convert(spec, left, value != nullptr ? *value : next_value());
  }

  void convert(Spec& spec, bool left, const Value& value) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': {
        std::string text = spec.type == 's' ? to_text(runtime_, value) : to_repr(runtime_, value);
        if (spec.type == 'a' && !is_ascii(text))
          fail_unsupported("%a of text that is not ASCII is not supported");
        if (markup_ && !(value.is_string() && value.as<Text>().markup)) text = escape_html(text);
        const std::string_view cut =
            spec.precision >= 0 ? std::string_view(text).substr(0, byte_offset(text, spec.precision)) : text;
        out_ += pad(runtime_, spec, "", std::string(cut), '>');
        return;
      }
      case 'c': {
        std::string text;
        if (value.is_string() && length(runtime_, value) == 1) {
          text = value.text();
        } else if (value.is_integral() && value.as_integer() >= 0 && value.as_integer() <= 0x10ffff) {
          append_code_point(text, static_cast<uint32_t>(value.as_integer()));
        } else {
          fail_type("%c requires int or char");
        }
        out_ += pad(runtime_, spec, "", text, '>');
        return;
      }
      default:
        break;
    }
    if (std::string_view("diuoxXeEfFgG").find(spec.type) == std::string_view::npos) {
      fail_value(fmt::format("unsupported format character '{}' (0x{:x}) at index {}", spec.type,
                             static_cast<unsigned char>(spec.type), at_ - 1));
    }
    number_conversion(spec, left, value);
  }

  void number_conversion(Spec& spec, bool left, const Value& value) {
    const bool real = std::string_view("eEfFgG").find(spec.type) != std::string_view::npos;
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_number()) {
      if (real) fail_type(fmt::format("must be real number, not {}", type_name(value)));
      fail_type(fmt::format(
          "%{} format: a{} number is required, not {}", spec.type,
          std::string_view("oxX").find(spec.type) != std::string_view::npos ? "n integer" : " real",
          type_name(value)));
    }
    if (spec.zero && !left) {
      spec.fill = "0";
      spec.align = '=';
    }
    if (real) {
      out_ += format_real(runtime_, spec, value.as_real(), "float");
      return;
    }
    const bool based = spec.type == 'o' || spec.type == 'x' || spec.type == 'X';
    if (value.is(Kind::real) && based) {
      fail_type(fmt::format("%{} format: an integer is required, not float", spec.type));
    }
    if (value.is(Kind::real) && std::fabs(value.as_real()) > 9e18) fail_overflow();
    const int64_t integer = value.is(Kind::real) ? static_cast<int64_t>(value.as_real()) : value.as_integer();
    std::string digits =
        integer_digits(magnitude(integer), based ? (spec.type == 'o' ? 8 : 16) : 10, spec.type == 'X');
    if (static_cast<int64_t>(digits.size()) < spec.precision) {
      digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
    }
    std::string prefix = sign_text(integer < 0, spec.sign);
    if (spec.alternate && based) prefix += std::string("0") + spec.type;
    out_ += pad(runtime_, spec, prefix, digits, '>');
  }

  Runtime& runtime_;
  std::string_view text_;
  bool markup_;
  const Value& values_;
  size_t at_ = 0;
  size_t used_ = 0;
  std::string out_;
};

// "{}" of str.format.
class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const CallArguments& arguments, bool markup)
      : runtime_(runtime), arguments_(arguments), markup_(markup) {}

  std::string run(std::string_view text, int depth) {
    if (depth < 0) fail_value("Max string recursion exceeded");
    std::string out;
    size_t at = 0;
    while (at < text.size()) {
      const char c = text[at];
      runtime_.charge(1);
      if (c == '{' || c == '}') {
        if (at + 1 < text.size() && text[at + 1] == c) {
          out += c;
          at += 2;
          continue;
        }
        if (c == '}') fail_value("Single '}' encountered in format string");
        out += field(text, at, depth);
        runtime_.check_string(static_cast<int64_t>(out.size()));
        continue;
      }
      out += c;
      ++at;
    }
    return out;
  }

 private:
  // `at` is at the opening brace, and after the closing one at the end.
  std::string field(std::string_view text, size_t& at, int depth) {
    const size_t begin = at + 1;
    size_t end = begin;
    int open = 1;
    for (; end < text.size(); ++end) {
      if (text[end] == '{') ++open;
      if (text[end] == '}' && --open == 0) break;
    }
    if (open != 0) {
      fail_value(begin >= text.size() ? "Single '{' encountered in format string"
                                      : "expected '}' before end of string");
    }
    at = end + 1;
    const std::string_view inside = text.substr(begin, end - begin);
    size_t split = 0;
    int brackets = 0;
    for (; split < inside.size(); ++split) {
      if (inside[split] == '[') ++brackets;
      if (inside[split] == ']') --brackets;
      if (brackets <= 0 && (inside[split] == ':' || inside[split] == '!')) break;
    }
    std::string_view rest = inside.substr(split);
    char conversion = '\0';
    if (!rest.empty() && rest[0] == '!') {
      if (rest.size() < 2) fail_value("end of string while looking for conversion specifier");
      conversion = rest[1];
      rest.remove_prefix(2);
      if (!rest.empty() && rest[0] != ':') fail_value("expected ':' after conversion specifier");
    }
    const Value value = convert(lookup(inside.substr(0, split)), conversion);
    const std::string spec = rest.empty() ? std::string() : run(rest.substr(1), depth - 1);
    std::string shown = format_value(runtime_, value, spec);
    return markup_ && !(value.is_string() && value.as<Text>().markup) ? escape_html(shown) : shown;
  }

  Value convert(const Value& value, char conversion) {
    switch (conversion) {
      case '\0':
        return value;
      case 's':
        return to_string(runtime_, value);
      case 'r':
        return make_string(runtime_, to_repr(runtime_, value));
      default:
        fail_value(fmt::format("Unknown conversion specifier {}", conversion));
    }
  }

  static bool digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos &&
           text.size() < 10;
  }

  Value first(std::string_view name) {
    if (name.empty()) {
      if (automatic_ < 0) {
        fail_value("cannot switch from manual field specification to automatic field numbering");
      }
      return positional(automatic_++);
    }
    if (digits(name)) {
      if (automatic_ > 0) {
        fail_value("cannot switch from manual field specification to automatic field numbering");
      }
      automatic_ = -1;
      size_t at = 0;
      return positional(read_number(name, at));
    }
    for (const auto& [key, value] : arguments_.keywords) {
      if (key == name) return value;
    }
    fail("KeyError", quote(name));
  }

  Value positional(int64_t index) {
    if (index >= static_cast<int64_t>(arguments_.positional.size())) {
      fail("IndexError", fmt::format("Replacement index {} out of range for positional args tuple", index));
    }
    return arguments_.positional[static_cast<size_t>(index)];
  }

  Value lookup(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end));
    size_t at = end;
    while (at < name.size()) {
      const char open = name[at++];
      if (open == '.') {
        const size_t stop = std::min(name.find_first_of(".[", at), name.size());
        if (stop == at) fail_value("Empty attribute in format string");
        value =
            get_attribute(runtime_, value, make_string(runtime_, std::string(name.substr(at, stop - at))));
        at = stop;
        continue;
      }
      const size_t stop = name.find(']', at);
      if (open != '[' || stop == std::string_view::npos) fail_value("Missing ']' in format string");
      const std::string_view key = name.substr(at, stop - at);
      if (key.empty()) fail_value("Empty attribute in format string");
      size_t zero = 0;
      value = get_item(
          runtime_, value,
          digits(key) ? Value::integer(read_number(key, zero)) : make_string(runtime_, std::string(key)));
      at = stop + 1;
      if (at < name.size() && name[at] != '.' && name[at] != '[') {
        fail_value("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Runtime& runtime_;
  const CallArguments& arguments_;
  bool markup_;
  int64_t automatic_ = 0;  // the next automatic number; -1 once numbers are given by hand
};

}  // namespace

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

Value percent_format(Runtime& runtime, const Value& format, const Value& values) {
  return make_string(runtime, PercentFormatter(runtime, format, values).run(), format.as<Text>().markup);
}

Value brace_format(Runtime& runtime, const Value& format, const CallArguments& arguments) {
  const bool markup = format.as<Text>().markup;
  return make_string(runtime, BraceFormatter(runtime, arguments, markup).run(format.text(), 2), markup);
}

}  // namespace tenon::jinja
