// A moment written as ISO 8601 has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tenon {

struct IsoTime {
  int64_t unix_seconds = 0;
  int64_t utc_offset_seconds = 0;
};

// "2024-07-26", "2024-07-26T12:34", "2024-07-26 12:34:56Z", "2024-07-26T12:34:56+02:00". Without a zone it is
// UTC; fractions of a second are dropped. Error: bad_argument.
Result<IsoTime> parse_iso_time(std::string_view text);

// "2024-07-26T12:34:56Z", which parse_iso_time() reads back. Years 0 to 9999.
std::string iso_time_text(int64_t unix_seconds);

}  // namespace tenon
