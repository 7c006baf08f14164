// JSON from files, with errors that say where. Accepts what Python's json module writes: NaN, Infinity and
// -Infinity are numbers. Duplicate keys: the last one counts, as in Python.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tenon {

// Error: bad_file; the subject is "subject:line:column".
Result<nlohmann::json> parse_json(std::string_view text, std::string_view subject);

// The same, with the keys of objects in the order of the text.
Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, std::string_view subject);

// Errors as read_file() and parse_json().
Result<nlohmann::json> read_json_file(const std::string& path, int64_t max_bytes = int64_t{64} << 20);

}  // namespace tenon
