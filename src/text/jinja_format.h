// Python's two ways to format: "%s" % value and "{}".format(value), with the format specifications of str,
// int and float. Reads attributes and items through the sandbox.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace tenon::jinja {

Value percent_format(Runtime& runtime, const Value& format, const Value& values);
Value brace_format(Runtime& runtime, const Value& format, const CallArguments& arguments);

// format(value, spec)
std::string format_value(Runtime& runtime, const Value& value, std::string_view spec);

}  // namespace tenon::jinja
