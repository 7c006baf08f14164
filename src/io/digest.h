// Content digests for the record: which file was read. XXH3, 128 bits, as 32 hexadecimal digits (what
// `xxhsum -H2` prints). Detects change, not forgery.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace tenon {

std::string digest(std::span<const std::byte> bytes);

// Reads the file in pieces. Errors: not_found, io.
Result<std::string> file_digest(const std::string& path);

}  // namespace tenon
