// The methods of Python's str, list, tuple, dict, int and float that a template may call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace tenon::jinja {

// A method bound to its owner, or missing when Python's type has none of that name. A method that exists in
// Python but makes no sense in a template (encode, maketrans, ...) refuses the call.
Value string_method(const Value& owner, std::string_view name);
Value dict_method(const Value& owner, std::string_view name);
Value sequence_method(const Value& owner, std::string_view name);
Value number_attribute(const Value& owner, std::string_view name);

using Method = Value (*)(Runtime&, const Value& self, CallArguments arguments);
struct MethodEntry {
  std::string_view name;
  Method call;
};

// The splitting methods of str (jinja_split.cc).
Value split(Runtime& runtime, const Value& self, CallArguments arguments);
Value rsplit(Runtime& runtime, const Value& self, CallArguments arguments);
Value splitlines(Runtime& runtime, const Value& self, CallArguments arguments);
Value partition(Runtime& runtime, const Value& self, CallArguments arguments);
Value rpartition(Runtime& runtime, const Value& self, CallArguments arguments);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// The searching methods of str (jinja_search.cc).
Value find_method(Runtime& runtime, const Value& self, CallArguments arguments);
Value rfind_method(Runtime& runtime, const Value& self, CallArguments arguments);
Value index_method(Runtime& runtime, const Value& self, CallArguments arguments);
Value rindex_method(Runtime& runtime, const Value& self, CallArguments arguments);
Value count_method(Runtime& runtime, const Value& self, CallArguments arguments);
Value startswith(Runtime& runtime, const Value& self, CallArguments arguments);
Value endswith(Runtime& runtime, const Value& self, CallArguments arguments);

// Replaces up to `count` times (all when negative).
std::string replace_text(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                         int64_t count);
// str.center and friends: the fill on each side, in code points.
std::string pad_text(Runtime& runtime, std::string_view text, int64_t left, int64_t right,
                     std::string_view fill);
std::string center_text(Runtime& runtime, std::string_view text, int64_t width, std::string_view fill);

}  // namespace tenon::jinja
