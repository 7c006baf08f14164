// Binding the arguments of a call to named parameters, with Python's TypeErrors.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace tenon::jinja {

// One value for each name; missing where no argument came. The first `required` must come.
std::vector<Value> bind(std::string_view function, CallArguments arguments,
                        std::initializer_list<std::string_view> names, size_t required);
// Positional only, between `required` and `most` of them.
std::vector<Value> bind_positional(std::string_view function, CallArguments arguments, size_t required,
                                   size_t most);

bool given(const Value& value);  // neither missing nor None

// TypeError unless an int.
int64_t index_argument(const Value& value);
int64_t index_or(const Value& value, int64_t otherwise);  // otherwise when missing or None
// TypeError unless a str. `what` begins the message: "replace() argument 1".
std::string_view string_argument(const Value& value, std::string_view what);
bool flag_argument(const Value& value, bool otherwise);

}  // namespace tenon::jinja
