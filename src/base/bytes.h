// Byte counts as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tenon {

// "8GiB", "500 MB", "1.5G", "4096". KiB, MiB, GiB, TiB and a lone K, M, G, T are powers of 1024; KB, MB, GB,
// TB are powers of 1000; no unit means bytes. Letter case is free; a fraction of a byte is dropped.
Result<int64_t> parse_bytes(std::string_view text);

// Three digits or more in the largest binary unit that is not below one: "1.50 GiB", "640 B".
std::string format_bytes(int64_t bytes);

}  // namespace tenon
