// Unpacking a gzip or zstd file to disk, so that its rows can be mapped. Memory stays constant.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "io/mapped_file.h"

namespace tenon {

enum class Compression { gzip, zstd };

// By the magic number at the beginning (RFC 1952, RFC 8878).
std::optional<Compression> compression_of(std::span<const std::byte> bytes);

// The content as a mapping of a file that has no name any more: the space is given back with the mapping.
// Errors: bad_file (damaged or cut short; subject `name`), io (no space in $TMPDIR).
Result<MappedFile> unpack_to_disk(std::span<const std::byte> packed, Compression compression,
                                  const std::string& name);

}  // namespace tenon
