// The functions every template can call: range, dict, namespace, cycler, joiner, raise_exception,
// strftime_now.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace tenon::jinja {

std::vector<std::pair<std::string, Value>> make_globals(Runtime& runtime);

// Attributes of a cycler or joiner; missing when there is none.
Value helper_attribute(Runtime& runtime, const Value& owner, std::string_view name);
Value joiner_call(Runtime& runtime, const Value& joiner, const CallArguments& arguments);

}  // namespace tenon::jinja
