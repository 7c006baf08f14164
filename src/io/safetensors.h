// The safetensors format (https://github.com/huggingface/safetensors, "Format"): eight bytes of header
// length, a JSON header, then the tensors' bytes without gaps. Parsing is a pure function over bytes and
// strict: what the format forbids is refused. Touches no file but through TensorFileWriter.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/tensor_entry.h"
#include "io/tensor_file_writer.h"

namespace tenon {

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by offset; offsets from the start of the file
  TextMetadata metadata;             // "__metadata__"
};

// `file` is the whole file. Reads only the header. Errors: bad_file (length out of bounds, not JSON,
// duplicate name, overlap, gap, range that does not match dtype and shape, overflow), unsupported (a dtype
// that Tenon has no use for, by name; more than kMaxRank dimensions). BOOL is read as u8. The subject is the
// tensor, if any.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file);

// The dtype's name in the format ("BF16"), empty where the format has none (block types).
std::string_view safetensors_dtype_name(DType dtype);

// Header and offsets for these tensors in this order: compact JSON, metadata first and sorted, padded with
// spaces to a multiple of 8; the same input gives the same bytes. Errors: bad_argument for a duplicate or
// reserved name, or a block dtype.
Result<TensorFileLayout> safetensors_layout(std::span<const TensorSpec> tensors,
                                            const TextMetadata& metadata);

// A writer of that layout.
Result<TensorFileWriter> create_safetensors(const std::string& path, std::span<const TensorSpec> tensors,
                                            const TextMetadata& metadata);

}  // namespace tenon
