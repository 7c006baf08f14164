// str.find, rfind, index, rindex, count, startswith and endswith.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_arguments.h"
#include "text/jinja_methods.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

// The part of self between two optional code point indices, and how many code points come before it.
struct Window {
  std::string_view text;
  int64_t before = 0;
  bool valid = true;  // false when the start is past the end, where Python finds nothing at all
};

Window window(Runtime& runtime, const Value& self, const Value& start, const Value& stop) {
  Window out{self.text(), 0, true};
  if (!given(start) && !given(stop)) return out;
  const int64_t size = length(runtime, self);
  const auto clamp = [&](int64_t index) { return index < 0 ? std::max<int64_t>(index + size, 0) : index; };
  const int64_t begin = clamp(std::max(index_or(start, 0), -size));
  const int64_t end = std::min(clamp(std::max(index_or(stop, size), -size)), size);
  out.before = begin;
  out.valid = begin <= end;
  if (!out.valid) return out;
  runtime.charge_copy(out.text);
  const size_t first = byte_offset(out.text, begin);
  out.text = out.text.substr(first, byte_offset(out.text.substr(first), end - begin));
  return out;
}

Value find_either(Runtime& runtime, const Value& self, CallArguments arguments, bool right, bool must) {
  const auto args = bind_positional(right ? "rfind" : "find", std::move(arguments), 1, 3);
  const std::string_view wanted = string_argument(args[0], "find() argument 1");
  const Window in = window(runtime, self, args[1], args[2]);
  runtime.charge_copy(self.text());
  size_t at = std::string_view::npos;
  if (in.valid) at = right ? rfind_text(in.text, wanted) : find_text(in.text, wanted);
  if (at != std::string_view::npos)
    return Value::integer(in.before + code_point_count(in.text.substr(0, at)));
  if (must) fail_value("substring not found");
  return Value::integer(-1);
}

Value affix(Runtime& runtime, const Value& self, CallArguments arguments, bool at_end) {
  const std::string_view name = at_end ? "endswith" : "startswith";
  const auto args = bind_positional(name, std::move(arguments), 1, 3);
  const Window in = window(runtime, self, args[1], args[2]);
  const auto matches = [&](const Value& value) {
    if (!value.is_string()) {
      fail_type(
          args[0].is(Kind::tuple)
              ? fmt::format("tuple for {} must only contain str, not {}", name, type_name(value))
              : fmt::format("{} first arg must be str or a tuple of str, not {}", name, type_name(value)));
    }
    runtime.charge_copy(value.text());
    return in.valid && (at_end ? in.text.ends_with(value.text()) : in.text.starts_with(value.text()));
  };
  if (!args[0].is(Kind::tuple)) return Value::boolean(matches(args[0]));
  for (const Value& value : args[0].as<Items>().values) {
    if (matches(value)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

}  // namespace

Value find_method(Runtime& runtime, const Value& self, CallArguments arguments) {
  return find_either(runtime, self, std::move(arguments), false, false);
}
Value rfind_method(Runtime& runtime, const Value& self, CallArguments arguments) {
  return find_either(runtime, self, std::move(arguments), true, false);
}
Value index_method(Runtime& runtime, const Value& self, CallArguments arguments) {
  return find_either(runtime, self, std::move(arguments), false, true);
}
Value rindex_method(Runtime& runtime, const Value& self, CallArguments arguments) {
  return find_either(runtime, self, std::move(arguments), true, true);
}

Value count_method(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("count", std::move(arguments), 1, 3);
  const std::string_view wanted = string_argument(args[0], "count() argument 1");
  const Window in = window(runtime, self, args[1], args[2]);
  runtime.charge_copy(self.text());
  if (!in.valid) return Value::integer(0);
  if (wanted.empty()) return Value::integer(code_point_count(in.text) + 1);
  int64_t count = 0;
  for (size_t at = find_text(in.text, wanted); at != std::string_view::npos;
       at = find_text(in.text, wanted, at + wanted.size())) {
    ++count;
  }
  return Value::integer(count);
}

Value startswith(Runtime& runtime, const Value& self, CallArguments arguments) {
  return affix(runtime, self, std::move(arguments), false);
}
Value endswith(Runtime& runtime, const Value& self, CallArguments arguments) {
  return affix(runtime, self, std::move(arguments), true);
}

}  // namespace tenon::jinja
