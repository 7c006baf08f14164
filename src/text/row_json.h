// The JSON of a row, at the speed of simdjson. Pure.
#pragma once

#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace tenon {

// What Json::parse(text) gives. Error: bad_file; the message says at which byte and why, `offset` is that
// byte.
Result<Json> parse_row_json(std::string_view text, int64_t& offset);

}  // namespace tenon
