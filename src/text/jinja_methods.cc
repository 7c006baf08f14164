// The methods of str, one small function each.
#include "text/jinja_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "text/jinja_arguments.h"
#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

// A string made from self, which keeps the markup flag of a markupsafe string.
Value made(Runtime& runtime, const Value& self, std::string text) {
  return make_string(runtime, std::move(text), self.as<Text>().markup);
}

using Mapping = std::string (*)(std::string_view);

template <Mapping mapping>
Value mapped(Runtime& runtime, const Value& self, CallArguments arguments) {
  bind_positional("str method", std::move(arguments), 0, 0);
  runtime.charge_scan(self.text());
  return made(runtime, self, mapping(self.text()));
}

using CharacterTest = bool (*)(uint32_t);

// All characters pass, and there is one.
template <CharacterTest test>
Value all_are(Runtime& runtime, const Value& self, CallArguments arguments) {
  bind_positional("str method", std::move(arguments), 0, 0);
  runtime.charge_scan(self.text());
  const std::string_view text = self.text();
  for (size_t offset = 0; offset < text.size();) {
    if (!test(next_code_point(text, offset))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

Value isprintable(Runtime& runtime, const Value& self, CallArguments arguments) {
  if (self.text().empty()) return Value::boolean(true);
  return all_are<is_printable>(runtime, self, std::move(arguments));
}

Value isascii(Runtime&, const Value& self, CallArguments arguments) {
  bind_positional("isascii", std::move(arguments), 0, 0);
  return Value::boolean(self.as<Text>().ascii);
}

Value isidentifier(Runtime&, const Value& self, CallArguments arguments) {
  bind_positional("isidentifier", std::move(arguments), 0, 0);
  return Value::boolean(is_identifier(self.text()));
}

// islower and isupper: no cased character of the other case, and at least one of this.
Value one_case(Runtime& runtime, const Value& self, CharacterTest wanted, CharacterTest other) {
  runtime.charge_copy(self.text());
  bool any = false;
  const std::string_view text = self.text();
  for (size_t offset = 0; offset < text.size();) {
    const uint32_t c = next_code_point(text, offset);
    if (other(c) || is_title(c)) return Value::boolean(false);
    any = any || wanted(c);
  }
  return Value::boolean(any);
}

Value islower(Runtime& runtime, const Value& self, CallArguments arguments) {
  bind_positional("islower", std::move(arguments), 0, 0);
  return one_case(runtime, self, is_lower, is_upper);
}

Value isupper(Runtime& runtime, const Value& self, CallArguments arguments) {
  bind_positional("isupper", std::move(arguments), 0, 0);
  return one_case(runtime, self, is_upper, is_lower);
}

Value istitle(Runtime& runtime, const Value& self, CallArguments arguments) {
  bind_positional("istitle", std::move(arguments), 0, 0);
  runtime.charge_copy(self.text());
  bool after_cased = false;
  bool any = false;
  const std::string_view text = self.text();
  for (size_t offset = 0; offset < text.size();) {
    const uint32_t c = next_code_point(text, offset);
    if (is_upper(c) || is_title(c)) {
      if (after_cased) return Value::boolean(false);
      after_cased = any = true;
    } else if (is_lower(c)) {
      if (!after_cased) return Value::boolean(false);
    } else {
      after_cased = false;
    }
  }
  return Value::boolean(any);
}

Value strip_either(Runtime& runtime, const Value& self, CallArguments arguments, bool left, bool right) {
  const auto args = bind_positional("strip", std::move(arguments), 0, 1);
  std::string_view text = self.text();
  if (!given(args[0])) {
    if (left) text = strip_left(text);
    if (right) text = strip_right(text);
  } else {
    const std::string_view chars = string_argument(args[0], "strip arg");
    runtime.charge_scan(chars);
    runtime.charge_scan(text);
    if (left) text = strip_left(text, chars);
    if (right) text = strip_right(text, chars);
  }
  return made(runtime, self, std::string(text));
}

Value strip(Runtime& runtime, const Value& self, CallArguments arguments) {
  return strip_either(runtime, self, std::move(arguments), true, true);
}
Value lstrip(Runtime& runtime, const Value& self, CallArguments arguments) {
  return strip_either(runtime, self, std::move(arguments), true, false);
}
Value rstrip(Runtime& runtime, const Value& self, CallArguments arguments) {
  return strip_either(runtime, self, std::move(arguments), false, true);
}

Value removeprefix(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("removeprefix", std::move(arguments), 1, 1);
  const std::string_view prefix = string_argument(args[0], "removeprefix() argument");
  std::string_view text = self.text();
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return made(runtime, self, std::string(text));
}

Value removesuffix(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("removesuffix", std::move(arguments), 1, 1);
  const std::string_view suffix = string_argument(args[0], "removesuffix() argument");
  std::string_view text = self.text();
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return made(runtime, self, std::string(text));
}

Value replace(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("replace", std::move(arguments), 2, 3);
  string_argument(args[0], "replace() argument 1");
  string_argument(args[1], "replace() argument 2");
  const bool markup = self.as<Text>().markup;
  const std::string from = markup ? escaped_text(runtime, args[0]) : std::string(args[0].text());
  const std::string to = markup ? escaped_text(runtime, args[1]) : std::string(args[1].text());
  const int64_t count = args[2].is_missing() ? -1 : index_argument(args[2]);
  return made(runtime, self, replace_text(runtime, self.text(), from, to, count));
}

Value join(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("join", std::move(arguments), 1, 1);
  if (!is_iterable(args[0])) fail_type("can only join an iterable");
  const bool markup = self.as<Text>().markup;
  std::string out;
  int64_t index = 0;
  for (const Value& value : elements(runtime, args[0])) {
    if (!value.is_string() && !markup) {
      fail_type(fmt::format("sequence item {}: expected str instance, {} found", index, type_name(value)));
    }
    if (index++ != 0) out += self.text();
    if (markup) {
      out += escaped_text(runtime, value);
    } else {
      out += value.text();
    }
    runtime.check_string(static_cast<int64_t>(out.size()));
  }
  return made(runtime, self, std::move(out));
}

std::string_view fill_argument(const Value& value) {
  if (value.is_missing()) return " ";
  const std::string_view fill = string_argument(value, "The fill character");
  if (code_point_count(fill) != 1) fail_type("The fill character must be exactly one character long");
  return fill;
}

Value center(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("center", std::move(arguments), 1, 2);
  return made(runtime, self,
              center_text(runtime, self.text(), index_argument(args[0]), fill_argument(args[1])));
}

Value ljust(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("ljust", std::move(arguments), 1, 2);
  const int64_t fill = index_argument(args[0]) - length(runtime, self);
  return made(runtime, self, pad_text(runtime, self.text(), 0, fill, fill_argument(args[1])));
}

Value rjust(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("rjust", std::move(arguments), 1, 2);
  const int64_t fill = index_argument(args[0]) - length(runtime, self);
  return made(runtime, self, pad_text(runtime, self.text(), fill, 0, fill_argument(args[1])));
}

Value zfill(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("zfill", std::move(arguments), 1, 1);
  const int64_t fill = index_argument(args[0]) - length(runtime, self);
  const std::string_view text = self.text();
  const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  return made(runtime, self,
              std::string(sign ? text.substr(0, 1) : "") +
                  pad_text(runtime, text.substr(sign ? 1 : 0), fill, 0, "0"));
}

Value expandtabs(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind("expandtabs", std::move(arguments), {"tabsize"}, 0);
  const int64_t size = index_or(args[0], 8);
  runtime.charge_scan(self.text());
  std::string out;
  int64_t column = 0;
  const std::string_view text = self.text();
  for (size_t offset = 0; offset < text.size();) {
    const uint32_t c = next_code_point(text, offset);
    if (c == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      runtime.check_string(static_cast<int64_t>(out.size()) + spaces);
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
      continue;
    }
    append_code_point(out, c);
    column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return made(runtime, self, std::move(out));
}

Value format_method(Runtime& runtime, const Value& self, CallArguments arguments) {
  return brace_format(runtime, self, arguments);
}

Value format_map(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("format_map", std::move(arguments), 1, 1);
  CallArguments named;
  if (args[0].is(Kind::dict)) {
    for (const auto& [key, value] : args[0].as<Dict>().entries) {
      if (key.is_string()) named.keywords.emplace_back(std::string(key.text()), value);
    }
  }
  return brace_format(runtime, self, named);
}

Value refused(Runtime&, const Value&, CallArguments) {
  fail_unsupported("this str method is not supported");
}

constexpr MethodEntry kStringMethods[] = {
    {"capitalize", mapped<to_capitalized>},
    {"casefold", mapped<case_fold>},
    {"center", center},
    {"count", count_method},
    {"encode", refused},
    {"endswith", endswith},
    {"expandtabs", expandtabs},
    {"find", find_method},
    {"format", format_method},
    {"format_map", format_map},
    {"index", index_method},
    {"isalnum", all_are<is_alnum>},
    {"isalpha", all_are<is_alpha>},
    {"isascii", isascii},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit>},
    {"isidentifier", isidentifier},
    {"islower", islower},
    {"isnumeric", all_are<is_numeric>},
    {"isprintable", isprintable},
    {"isspace", all_are<is_space>},
    {"istitle", istitle},
    {"isupper", isupper},
    {"join", join},
    {"ljust", ljust},
    {"lower", mapped<to_lower>},
    {"lstrip", lstrip},
    {"maketrans", refused},
    {"partition", partition},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"rfind", rfind_method},
    {"rindex", rindex_method},
    {"rjust", rjust},
    {"rpartition", rpartition},
    {"rsplit", rsplit},
    {"rstrip", rstrip},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"strip", strip},
    {"swapcase", mapped<swap_case>},
    {"title", mapped<to_title>},
    {"translate", refused},
    {"upper", mapped<to_upper>},
    {"zfill", zfill},
};

}  // namespace

Value string_method(const Value& owner, std::string_view name) {
  const auto* it =
      std::lower_bound(std::begin(kStringMethods), std::end(kStringMethods), name,
                       [](const MethodEntry& entry, std::string_view key) { return entry.name < key; });
  if (it == std::end(kStringMethods) || it->name != name) return Value();
  return make_function(std::string(name), "builtin_function_or_method", owner, it->call);
}

}  // namespace tenon::jinja
