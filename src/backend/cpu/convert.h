// Reads any dtype as f32 or f64 and rounds back. The vector versions are in convert-inl.h and
// dequantise-inl.h; these call the ones of the processor in use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace tenon {

// Elements [begin, begin + count) of a contiguous row as f32: exact for bf16 and f16, rounded for f64 and
// wide integers. For block dtypes `begin` and `count` are whole blocks.
void widen_to_f32(DType dtype, const std::byte* row, int64_t begin, int64_t count, float* out);

// Rounds f32 to nearest, ties to even, into f32, bf16, f16 or f64.
void round_from_f32(DType dtype, const float* values, int64_t count, std::byte* out);

// All `count` elements as f64, exact but for i64 beyond 2^53.
void widen_to_f64(DType dtype, const std::byte* data, int64_t count, double* out);

// Rounds to the dtype: floats to nearest even, integers by their value. Not for block dtypes (CHECK).
void round_from_f64(DType dtype, const double* values, int64_t count, std::byte* out);

}  // namespace tenon
