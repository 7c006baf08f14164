// How fast the system hands out bytes of files that it holds in memory: the ceiling of loading them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace tenon {

// Bytes a second that `threads` threads read from the files, each into a buffer of its own, of at most
// `most_bytes` in all; before the clock runs they are read once, which brings them into memory. 0 where there
// is nothing to read. Errors: io, not_found.
Result<double> page_cache_bytes_per_second(std::span<const std::string> files, int threads,
                                           int64_t most_bytes);

}  // namespace tenon
