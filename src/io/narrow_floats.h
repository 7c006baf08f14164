// Floating-point numbers of 8 and 4 bits, as the OCP formats define them (OFP8 1.0, MX 1.0), and rows of them
// with the scales that a checkpoint keeps in a tensor beside. Scalar code; no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/tensor_entry.h"

namespace tenon {

// E4M3: bias 7, no infinities, 0x7f and 0xff are NaN. E5M2: bias 15, IEEE's infinities and NaN. E8M0: 2^(x -
// 127), 0xff is NaN.
float f8_e4m3_to_f32(uint8_t bits);
float f8_e5m2_to_f32(uint8_t bits);
float f8_e8m0_to_f32(uint8_t bits);

// `elements` bytes of a code other than `none` to floats.
void decode_row(ByteCode code, const std::byte* src, float* dst, int64_t elements);

// MXFP4 with scales apart: 32 values of E2M1 in 16 bytes, the lower half of a byte first, and one E8M0 scale
// for them. `elements` is a multiple of 32.
void decode_mxfp4_row(const std::byte* src, const std::byte* scales, float* dst, int64_t elements);

}  // namespace tenon
