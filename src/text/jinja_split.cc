// str.split, rsplit, splitlines, partition and rpartition; replacing and padding.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_arguments.h"
#include "text/jinja_methods.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

Value string_list(Runtime& runtime, const Value& self, const std::vector<std::string_view>& parts) {
  std::vector<Value> out;
  out.reserve(parts.size());
  for (std::string_view part : parts)
    out.push_back(make_string(runtime, std::string(part), self.as<Text>().markup));
  return make_list(runtime, std::move(out));
}

std::vector<std::string_view> split_space(Runtime& runtime, std::string_view text, int64_t most) {
  std::vector<std::string_view> out;
  runtime.charge_scan(text);
  std::string_view rest = strip_left(text);
  while (!rest.empty()) {
    if (most-- == 0) {
      out.push_back(rest);
      break;
    }
    size_t end = 0;
    while (end < rest.size()) {
      size_t next = end;
      if (is_space(next_code_point(rest, next))) break;
      end = next;
    }
    out.push_back(rest.substr(0, end));
    rest = strip_left(rest.substr(end));
  }
  return out;
}

std::vector<std::string_view> rsplit_space(Runtime& runtime, std::string_view text, int64_t most) {
  std::vector<std::string_view> out;
  runtime.charge_scan(text);
  std::string_view rest = strip_right(text);
  while (!rest.empty()) {
    if (most-- == 0) {
      out.push_back(rest);
      break;
    }
    size_t begin = rest.size();
    while (begin > 0) {
      size_t at = begin - 1;
      while (at > 0 && (static_cast<unsigned char>(rest[at]) & 0xc0) == 0x80) --at;
      size_t next = at;
      if (is_space(next_code_point(rest, next))) break;
      begin = at;
    }
    out.push_back(rest.substr(begin));
    rest = strip_right(rest.substr(0, begin));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string_view> split_by(Runtime& runtime, std::string_view text, std::string_view separator,
                                       int64_t most) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  while (most-- != 0) {
    const size_t at = find_text(text, separator, begin);
    if (at == std::string_view::npos) break;
    runtime.charge(1);
    out.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  out.push_back(text.substr(begin));
  return out;
}

std::vector<std::string_view> rsplit_by(Runtime& runtime, std::string_view text, std::string_view separator,
                                        int64_t most) {
  std::vector<std::string_view> out;
  size_t end = text.size();
  while (most-- != 0 && end >= separator.size()) {
    const size_t at = rfind_text(text.substr(0, end), separator);
    if (at == std::string_view::npos) break;
    runtime.charge_copy(text.substr(at, end - at));
    out.push_back(text.substr(at + separator.size(), end - at - separator.size()));
    end = at;
  }
  out.push_back(text.substr(0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

Value split_either(Runtime& runtime, const Value& self, CallArguments arguments, bool right) {
  const auto args = bind(right ? "rsplit" : "split", std::move(arguments), {"sep", "maxsplit"}, 0);
  const int64_t most = args[1].is_missing() ? -1 : index_argument(args[1]);
  runtime.charge_copy(self.text());
  if (!given(args[0])) {
    return string_list(
        runtime, self,
        right ? rsplit_space(runtime, self.text(), most) : split_space(runtime, self.text(), most));
  }
  const std::string_view separator = string_argument(args[0], "sep");
  if (separator.empty()) fail_value("empty separator");
  return string_list(runtime, self,
                     right ? rsplit_by(runtime, self.text(), separator, most)
                           : split_by(runtime, self.text(), separator, most));
}

Value partition_either(Runtime& runtime, const Value& self, CallArguments arguments, bool right) {
  const auto args = bind_positional(right ? "rpartition" : "partition", std::move(arguments), 1, 1);
  const std::string_view separator = string_argument(args[0], "separator");
  if (separator.empty()) fail_value("empty separator");
  const std::string_view text = self.text();
  runtime.charge_copy(text);
  const size_t at = right ? rfind_text(text, separator) : find_text(text, separator);
  std::vector<std::string_view> parts;
  if (at != std::string_view::npos) {
    parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  } else if (right) {
    parts = {"", "", text};
  } else {
    parts = {text, "", ""};
  }
  std::vector<Value> out;
  for (std::string_view part : parts)
    out.push_back(make_string(runtime, std::string(part), self.as<Text>().markup));
  return make_tuple(runtime, std::move(out));
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  size_t offset = 0;
  while (offset < text.size()) {
    const size_t end = offset;
    const uint32_t c = next_code_point(text, offset);
    if (!is_line_break(c)) continue;
    if (c == '\r' && offset < text.size() && text[offset] == '\n') ++offset;
    out.push_back(text.substr(begin, (keep_ends ? offset : end) - begin));
    begin = offset;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

Value split(Runtime& runtime, const Value& self, CallArguments arguments) {
  return split_either(runtime, self, std::move(arguments), false);
}

Value rsplit(Runtime& runtime, const Value& self, CallArguments arguments) {
  return split_either(runtime, self, std::move(arguments), true);
}

Value splitlines(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind("splitlines", std::move(arguments), {"keepends"}, 0);
  runtime.charge_scan(self.text());
  return string_list(runtime, self, split_lines(self.text(), flag_argument(args[0], false)));
}

Value partition(Runtime& runtime, const Value& self, CallArguments arguments) {
  return partition_either(runtime, self, std::move(arguments), false);
}

Value rpartition(Runtime& runtime, const Value& self, CallArguments arguments) {
  return partition_either(runtime, self, std::move(arguments), true);
}

std::string replace_text(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                         int64_t count) {
  runtime.charge_copy(text);
  std::string out;
  size_t begin = 0;
  const auto add = [&](std::string_view part) {
    out += part;
    runtime.charge(1);
    runtime.check_string(static_cast<int64_t>(out.size()));
  };
  while (count != 0) {
    if (count > 0) --count;
    if (from.empty()) {
      add(to);
      if (begin >= text.size()) return out;
      const size_t start = begin;
      next_code_point(text, begin);
      add(text.substr(start, begin - start));
      continue;
    }
    const size_t at = find_text(text, from, begin);
    if (at == std::string_view::npos) break;
    add(text.substr(begin, at - begin));
    add(to);
    begin = at + from.size();
  }
  add(text.substr(begin));
  return out;
}

std::string pad_text(Runtime& runtime, std::string_view text, int64_t left, int64_t right,
                     std::string_view fill) {
  left = std::max<int64_t>(left, 0);
  right = std::max<int64_t>(right, 0);
  runtime.check_string(left);
  runtime.check_string(right);
  runtime.check_string((left + right) * static_cast<int64_t>(fill.size()) +
                       static_cast<int64_t>(text.size()));
  std::string out;
  const auto add_fill = [&](int64_t count) {
    if (fill.size() == 1) {
      out.append(static_cast<size_t>(count), fill[0]);
    } else {
      for (int64_t i = 0; i < count; ++i) out += fill;
    }
  };
  add_fill(left);
  out += text;
  add_fill(right);
  return out;
}

std::string center_text(Runtime& runtime, std::string_view text, int64_t width, std::string_view fill) {
  runtime.check_string(width);
  const int64_t space = width - code_point_count(text);
  if (space <= 0) return std::string(text);
  // CPython puts the odd cell on the left when the width is odd too.
  const int64_t left = space / 2 + (space & width & 1);
  return pad_text(runtime, text, left, space - left, fill);
}

}  // namespace tenon::jinja
