// strftime of a fixed moment, in English, without the C library's locale or time zone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja_runtime.h"

namespace tenon::jinja {

// `seconds` since 1970-01-01 00:00:00 of the clock to print (already moved to its time zone).
std::string format_time(Runtime& runtime, int64_t seconds, std::string_view format);

}  // namespace tenon::jinja
