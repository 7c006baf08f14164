// The filters and tests of jinja2, found by name.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace tenon::jinja {

// True for every filter and test jinja2 has, also those that are refused when used (random, urlize, pprint,
// wordwrap).
bool filter_exists(std::string_view name);
bool test_exists(std::string_view name);

Value call_filter(Runtime& runtime, std::string_view name, const Value& input, CallArguments arguments);
bool call_test(Runtime& runtime, std::string_view name, const Value& value, CallArguments arguments);

using Filter = Value (*)(Runtime&, const Value& input, CallArguments arguments);
struct FilterEntry {
  std::string_view name;
  Filter call;
};
struct FilterTable {
  const FilterEntry* entries;
  size_t size;
};
FilterTable text_filters();                                                   // jinja_text_filters.cc
FilterTable number_filters();                                                 // jinja_number_filters.cc
FilterTable sequence_filters();                                               // jinja_sequence_filters.cc
FilterTable select_filters();                                                 // jinja_select_filters.cc
Value tojson(Runtime& runtime, const Value& input, CallArguments arguments);  // jinja_json.cc

// An iterator over what `fill` makes, for filters that Python runs element by element as they are read. Here
// all is made at once; an error on the way waits until the reader comes to its place.
Value lazily(Runtime& runtime, const std::function<void(std::vector<Value>& out)>& fill);

// The value at a dotted path such as "function.name" (or an index); the value itself when the path is missing
// or None. A part that is undefined becomes `otherwise`, if that is given.
Value attribute_path(Runtime& runtime, const Value& value, const Value& path,
                     const Value& otherwise = Value());
// What case-insensitive filters compare: a string in lower case, anything else as it is.
Value ignore_case(Runtime& runtime, const Value& value);

}  // namespace tenon::jinja
