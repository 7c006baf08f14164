// JSON from files, with errors that say where. Accepts what Python's json module writes: NaN, Infinity and
// -Infinity are numbers. Keys keep the order of the text; of duplicate keys the last one counts, as in
// Python.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace tenon {

// Error: bad_file; the subject is "subject:line:column".
Result<Json> parse_json(std::string_view text, std::string_view subject);

// Errors as read_file() and parse_json().
Result<Json> read_json_file(const std::string& path, int64_t max_bytes = int64_t{64} << 20);

}  // namespace tenon
