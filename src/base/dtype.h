// Element types. A block-quantised type stores `block_elements` values in `block_bytes` bytes (GGUF's
// layouts: scales sit inside the block), so quantisation is a dtype of the value and never a flag of an op.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

enum class DType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i8,
  u8,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
};

struct DTypeInfo {
  std::string_view name;   // as printed in plans and records
  int32_t block_elements;  // 1 for plain types
  int32_t block_bytes;
  bool is_float;  // plain floating point
};

const DTypeInfo& dtype_info(DType dtype);
inline std::string_view dtype_name(DType dtype) {
  return dtype_info(dtype).name;
}
inline bool is_block_quantised(DType dtype) {
  return dtype_info(dtype).block_elements > 1;
}

// The dtype of that name ("f32", "q4_1"), or nothing.
std::optional<DType> dtype_from_name(std::string_view name);

// Bytes of `elements` values; nothing when it overflows or is not whole blocks.
std::optional<int64_t> dtype_bytes(DType dtype, int64_t elements);

}  // namespace tenon
