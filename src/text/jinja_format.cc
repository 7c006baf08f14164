// The two ways to format: "%" and str.format().
#include "text/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja_format_spec.h"
#include "text/jinja_members.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

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
    if (at_ < text_.size() && text_[at_] == '%') {
      ++at_;
      out_ += '%';
      return;
    }
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

Value percent_format(Runtime& runtime, const Value& format, const Value& values) {
  return make_string(runtime, PercentFormatter(runtime, format, values).run(), format.as<Text>().markup);
}

Value brace_format(Runtime& runtime, const Value& format, const CallArguments& arguments) {
  const bool markup = format.as<Text>().markup;
  return make_string(runtime, BraceFormatter(runtime, arguments, markup).run(format.text(), 2), markup);
}

}  // namespace tenon::jinja
