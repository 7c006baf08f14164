// CRC-32C (Castagnoli), as RFC 3720 appendix B.4 has it. Table of bytes; for small records, not for speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon {

uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace tenon
