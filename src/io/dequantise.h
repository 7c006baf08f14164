// Stored numbers to float and back, a row at a time. The definitions of the block types are ggml's
// (ggml-quants.c and ggml-common.h, as the Python package `gguf` states them); results equal that package bit
// for bit. Scalar code that the compiler vectorises; no threads, no allocation. src may be unaligned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace tenon {

// True for every floating-point and block dtype.
bool can_dequantise(DType dtype);

// `elements` values from src to dst. `elements` is a multiple of the dtype's block. f64 is rounded to float.
// i32 and i64 become the nearest float; any other dtype that can_dequantise() refuses is a CHECK.
void dequantise_row(DType dtype, const std::byte* src, float* dst, int64_t elements);

// True for f32, f16, bf16, q8_0, q4_0 and q4_1.
bool can_quantise(DType dtype);

// ggml's reference quantisers. `elements` is a multiple of the block; values should be finite (a block with a
// NaN or infinity gives unspecified but defined bytes). CHECKs that can_quantise(dtype).
void quantise_row(DType dtype, const float* src, std::byte* dst, int64_t elements);

}  // namespace tenon
