// Building a GGUF (version 3) header from metadata and a tensor list, for export and tests. Pure: the bytes
// depend on the calls and their order alone. The data is streamed by TensorFileWriter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/gguf.h"
#include "io/tensor_file_writer.h"

namespace tenon {

class GgufHeader {
 public:
  // Each adds one key; a key that is empty or already there is a bug of the caller (CHECK).
  void add_u32(std::string_view key, uint32_t value);
  void add_i32(std::string_view key, int32_t value);
  void add_u64(std::string_view key, uint64_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  void add_strings(std::string_view key, std::span<const std::string> values);
  // Copies a value read from another file, of any type.
  void add(std::string_view key, const GgufValue& value);

  // The header, aligned to 32 bytes (or to "general.alignment" if added), and each tensor's place. Errors:
  // bad_argument for a duplicate or empty name, more than four dimensions, rows that are not whole blocks, or
  // a bad alignment.
  Result<TensorFileLayout> layout(std::span<const TensorSpec> tensors) const;

 private:
  void begin(std::string_view key, GgufType type);

  std::string entries_;
  std::vector<std::string> keys_;
  int64_t alignment_bytes_ = 32;
};

Result<TensorFileWriter> create_gguf(const std::string& path, const GgufHeader& header,
                                     std::span<const TensorSpec> tensors);

}  // namespace tenon
