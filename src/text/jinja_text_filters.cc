// Filters that give a string.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_arguments.h"
#include "text/jinja_filters.h"
#include "text/jinja_format.h"
#include "text/jinja_loop.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

// soft_str: a string stays what it is (also markup), anything else becomes one.
Value soft(Runtime& runtime, const Value& value) {
  return value.is_string() ? value : to_string(runtime, value);
}

Value made(Runtime& runtime, const Value& from, std::string text) {
  return make_string(runtime, std::move(text), from.as<Text>().markup);
}

using Mapping = std::string (*)(std::string_view);

template <Mapping mapping>
Value mapped(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("filter", std::move(arguments), {}, 0);
  const Value text = soft(runtime, input);
  runtime.charge_scan(text.text());
  return made(runtime, text, mapping(text.text()));
}

std::string title_text(std::string_view text) {
  std::string out;
  const auto is_break = [](uint32_t c) {
    return c == '-' || is_space(c) || c == '(' || c == '{' || c == '[' || c == '<';
  };
  for (size_t offset = 0; offset < text.size();) {
    const size_t begin = offset;
    const bool breaks = is_break(next_code_point(text, offset));
    const size_t head = offset;
    while (offset < text.size()) {
      size_t next = offset;
      if (is_break(next_code_point(text, next)) != breaks) break;
      offset = next;
    }
    out += to_upper(text.substr(begin, head - begin));
    out += to_lower(text.substr(head, offset - head));
  }
  return out;
}

Value string(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("string", std::move(arguments), {}, 0);
  return soft(runtime, input);
}

Value safe(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("safe", std::move(arguments), {}, 0);
  return make_string(runtime, to_text(runtime, input), true);
}

Value escape(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("escape", std::move(arguments), {}, 0);
  return make_string(runtime, escaped_text(runtime, input), true);
}

Value forceescape(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("forceescape", std::move(arguments), {}, 0);
  return make_string(runtime, escape_html(to_text(runtime, input)), true);
}

Value trim(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("trim", std::move(arguments), {"chars"}, 0);
  const Value text = soft(runtime, input);
  if (!given(args[0])) return made(runtime, text, std::string(strip_left(strip_right(text.text()))));
  const std::string_view chars = string_argument(args[0], "strip arg");
  runtime.charge_scan(chars);
  runtime.charge_scan(text.text());
  return made(runtime, text, std::string(strip_left(strip_right(text.text(), chars), chars)));
}

Value replace(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("replace", std::move(arguments), {"old", "new", "count"}, 2);
  const int64_t count = given(args[2]) ? index_argument(args[2]) : -1;
  return make_string(runtime, replace_text(runtime, to_text(runtime, input), to_text(runtime, args[0]),
                                           to_text(runtime, args[1]), count));
}

Value join(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("join", std::move(arguments), {"d", "attribute"}, 0);
  const std::string separator = args[0].is_missing() ? std::string() : to_text(runtime, args[0]);
  std::string out;
  ElementSource source(runtime, input);
  Value value;
  for (bool first = true; source.next(runtime, value); first = false) {
    if (!first) out += separator;
    value = attribute_path(runtime, value, args[1]);
    if (value.is_string()) {
      out += value.text();
    } else {
      out += to_text(runtime, value);
    }
    runtime.check_string(static_cast<int64_t>(out.size()));
  }
  return make_string(runtime, std::move(out));
}

Value center(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("center", std::move(arguments), {"width"}, 0);
  const Value text = soft(runtime, input);
  return made(runtime, text, center_text(runtime, text.text(), index_or(args[0], 80), " "));
}

Value format(Runtime& runtime, const Value& input, CallArguments arguments) {
  if (!arguments.positional.empty() && !arguments.keywords.empty()) {
    fail("FilterArgumentError", "can't handle positional and keyword arguments at the same time");
  }
  const Value text = soft(runtime, input);
  if (arguments.keywords.empty()) {
    return percent_format(runtime, text, make_tuple(runtime, std::move(arguments.positional)));
  }
  DictBuilder dict(runtime);
  for (auto& [key, value] : arguments.keywords) dict.set(make_string(runtime, key), std::move(value));
  return percent_format(runtime, text, dict.finish());
}

Value indent(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("indent", std::move(arguments), {"width", "first", "blank"}, 0);
  std::string indention;
  if (args[0].is_string()) {
    indention = args[0].text();
  } else {
    const int64_t width = args[0].is_missing() ? 4 : index_argument(args[0]);
    runtime.check_string(width);
    indention.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is_string()) {
    fail_type(fmt::format("unsupported operand type(s) for +=: '{}' and 'str'", type_name(input)));
  }
  const bool blank = flag_argument(args[2], false);
  // The added line end keeps an empty last line.
  const std::string text = std::string(input.text()) + "\n";
  runtime.charge_scan(text);
  std::string out;
  bool first = true;
  for (std::string_view line : split_lines(text, false)) {
    if (!first) out += "\n";
    if (!first && (blank || !line.empty())) out += indention;
    out += line;
    first = false;
    runtime.charge(1);
    runtime.check_string(static_cast<int64_t>(out.size()));
  }
  if (flag_argument(args[1], false)) out = indention + out;
  return made(runtime, input, std::move(out));
}

Value truncate(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("truncate", std::move(arguments), {"length", "killwords", "end", "leeway"}, 0);
  const int64_t most = args[0].is_missing() ? 255 : index_argument(args[0]);
  const std::string end = args[2].is_missing() ? "..." : std::string(string_argument(args[2], "end"));
  const int64_t leeway = index_or(args[3], 5);
  const int64_t end_size = code_point_count(end);
  if (most < end_size) fail("AssertionError", fmt::format("expected length >= {}, got {}", end_size, most));
  if (leeway < 0) fail("AssertionError", fmt::format("expected leeway >= 0, got {}", leeway));
  const int64_t size = length(runtime, input);
  if (size <= most || size - most <= leeway) return input;
  if (!input.is_string()) fail_type(fmt::format("truncate() needs a str, not {}", type_name(input)));
  std::string_view text = input.text().substr(0, byte_offset(input.text(), most - end_size));
  if (!flag_argument(args[1], false)) text = text.substr(0, text.rfind(' '));
  return made(runtime, input, std::string(text) + end);
}

bool is_url_safe(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '-' || c == '~';
}

std::string url_quote(Runtime& runtime, const Value& value, bool query) {
  std::string out;
  const std::string text = to_text(runtime, value);
  runtime.charge_scan(text);
  for (char c : text) {
    if (is_url_safe(c) || (c == '/' && !query)) {
      out += c;
    } else if (c == ' ' && query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value urlencode(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("urlencode", std::move(arguments), {}, 0);
  if (input.is_string() || !is_iterable(input)) return make_string(runtime, url_quote(runtime, input, false));
  std::string out;
  const auto add = [&](const Value& key, const Value& value) {
    if (!out.empty()) out += '&';
    out += url_quote(runtime, key, true) + "=" + url_quote(runtime, value, true);
  };
  if (input.is(Kind::dict)) {
    for (const auto& [key, value] : input.as<Dict>().entries) add(key, value);
  } else {
    for (const Value& pair : elements(runtime, input)) {
      const auto values = elements(runtime, pair);
      if (values.size() != 2) fail_value("urlencode() needs pairs of a key and a value");
      add(values[0], values[1]);
    }
  }
  return make_string(runtime, std::move(out));
}

Value xmlattr(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("xmlattr", std::move(arguments), {"autospace"}, 0);
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is(Kind::dict)) fail_type(fmt::format("'{}' object has no attribute 'items'", type_name(input)));
  std::string out;
  for (const auto& [key, value] : input.as<Dict>().entries) {
    if (value.is(Kind::none) || value.is_undefined()) continue;
    const std::string_view name = string_argument(key, "an attribute name");
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      fail_value(fmt::format("Invalid character in attribute name: {}", quote(name)));
    }
    if (!out.empty()) out += ' ';
    out += fmt::format("{}=\"{}\"", escaped_text(runtime, key), escaped_text(runtime, value));
  }
  if (!out.empty() && flag_argument(args[0], true)) out.insert(0, " ");
  return make_string(runtime, std::move(out));
}

Value wordcount(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("wordcount", std::move(arguments), {}, 0);
  const std::string text = to_text(runtime, input);
  runtime.charge_scan(text);
  int64_t count = 0;
  bool inside = false;
  for (size_t offset = 0; offset < text.size();) {
    const bool word = is_word(next_code_point(text, offset));
    if (word && !inside) ++count;
    inside = word;
  }
  return Value::integer(count);
}

// Text without <tags> and comments, with each run of white space made one space.
Value striptags(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("striptags", std::move(arguments), {}, 0);
  std::string text = to_text(runtime, input);
  runtime.charge_scan(text);
  const auto cut = [&](std::string_view open, std::string_view close) {
    std::string out;
    size_t begin = 0;
    while (true) {
      const size_t start = text.find(open, begin);
      const size_t end =
          start == std::string::npos ? start : text.find(close, start + (close == ">" ? 1 : 0));
      if (end == std::string::npos) break;
      out += text.substr(begin, start - begin);
      begin = end + close.size();
    }
    text = out + text.substr(begin);
  };
  cut("<!--", "-->");
  cut("<", ">");
  std::string out;
  const Value joined = make_string(runtime, text);
  for (const Value& word : elements(runtime, split(runtime, joined, CallArguments{}))) {
    if (!out.empty()) out += ' ';
    out += word.text();
  }
  if (out.find('&') != std::string::npos)
    fail_unsupported("striptags of text with character references is not supported");
  return make_string(runtime, std::move(out));
}

constexpr FilterEntry kFilters[] = {
    {"capitalize", mapped<to_capitalized>},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"forceescape", forceescape},
    {"format", format},
    {"indent", indent},
    {"join", join},
    {"lower", mapped<to_lower>},
    {"replace", replace},
    {"safe", safe},
    {"string", string},
    {"striptags", striptags},
    {"title", mapped<title_text>},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", mapped<to_upper>},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
    {"xmlattr", xmlattr},
};

}  // namespace

FilterTable text_filters() {
  return {kFilters, std::size(kFilters)};
}

}  // namespace tenon::jinja
