// The JSON of a row, at the speed of simdjson. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"

namespace tenon {

// What nlohmann::ordered_json::parse(text) gives: keys in their order, of a key that stands twice the last
// value at the first place, integers beyond 64 bits as doubles. Error: bad_file; the message says at which
// byte and why, `offset` is that byte.
Result<nlohmann::ordered_json> parse_row_json(std::string_view text, int64_t& offset);

}  // namespace tenon
