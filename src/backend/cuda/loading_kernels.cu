// Kernels of loading: packed rows of stored values (loading.h) to elements of a weight, each rounded once,
// and the place of the first value that is not finite.
#include "backend/cuda/launch.h"
#include "backend/cuda/loading.h"
#include "backend/cuda/quantised.h"

namespace tenon::cuda {
namespace {

constexpr int64_t kBlock = 32;  // values of a q8_0 block
constexpr int64_t kBlockBytes = 34;
constexpr unsigned kColumnsPerBlock = 8 * kThreads;

struct PackedRows {
  const uint8_t* data;
  int64_t pitch, scales_at;
  int64_t columns, skip, stride;
  StoredCode code;
  DType dtype;
  StoredCode scale_code;
  DType scale_dtype;
  int64_t scale_columns, scales_skip;  // columns 0: no scales
};

// Element `first` + row * row_step + column * column_step of a weight.
struct Target {
  std::byte* data;
  DType dtype;
  int64_t first, row_step, column_step;
};

struct Watch {
  unsigned long long load;  // its number, above kElementBits
  unsigned long long* not_finite;
};

// 8-bit floats as the OCP formats define them (io/narrow_floats.h).
__device__ inline float byte_value(StoredCode code, uint8_t bits) {
  if (code == StoredCode::f8_e5m2) return f16_value(static_cast<uint16_t>(bits << 8));
  if (code == StoredCode::f8_e8m0) {
    if (bits == 0xff) return as_float(0x7fc00000u);
    return as_float(bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23);
  }
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return as_float(0x7fc00000u);
  if (magnitude >= 8) return as_float(sign | ((magnitude << 20) + (120u << 23)));
  const float small = static_cast<float>(magnitude) * 0x1p-9f;
  return sign != 0 ? -small : small;
}

__device__ inline float plain_value(DType dtype, const uint8_t* data, int64_t i) {
  switch (dtype) {
    case DType::f32:
      return reinterpret_cast<const float*>(data)[i];
    case DType::bf16:
      return bf16_value(reinterpret_cast<const uint16_t*>(data)[i]);
    case DType::f16:
      return f16_value(reinterpret_cast<const uint16_t*>(data)[i]);
    case DType::f64:
      return static_cast<float>(reinterpret_cast<const double*>(data)[i]);
    case DType::i64:
      return static_cast<float>(reinterpret_cast<const int64_t*>(data)[i]);
    case DType::i32:
      return static_cast<float>(reinterpret_cast<const int32_t*>(data)[i]);
    default:
      return quantised_at(dtype, data, i);
  }
}

__device__ inline float coded_value(StoredCode code, DType dtype, const uint8_t* data, int64_t i) {
  return code == StoredCode::plain ? plain_value(dtype, data, i) : byte_value(code, data[i]);
}

// E2M1: twice the value is 0, 1, 2, 3, 4, 6, 8 or 12.
__device__ inline float four_bit_value(int bits) {
  const int magnitude = bits & 7;
  const int twice = magnitude < 4 ? magnitude : (2 + (magnitude & 1)) << (magnitude / 2 - 1);
  const float value = static_cast<float>(twice) * 0.5f;
  return (bits & 8) != 0 ? -value : value;
}

__device__ inline float packed_value(const PackedRows& from, int64_t row, int64_t column) {
  const uint8_t* data = from.data + row * from.pitch;
  const int64_t i = from.skip + column * from.stride;
  const float value = from.code == StoredCode::mxfp4 ? four_bit_value(data[i / 2] >> (i % 2 * 4) & 15)
                                                     : coded_value(from.code, from.dtype, data, i);
  if (from.scale_columns == 0) return value;
  const int64_t at = (from.scales_skip + i) / from.scale_columns;
  return value * coded_value(from.scale_code, from.scale_dtype, data + from.scales_at, at);
}

// at = min(at, value), whatever the order of the threads.
__device__ inline void note_least(unsigned long long* at, unsigned long long value) {
#ifdef TENON_CUDA_EMULATED
  if (value < *at) *at = value;
#else
  atomicMin(at, value);
#endif
}

__device__ inline void check_finite(float value, const Watch& watch, int64_t element) {
  if ((as_bits(value) & 0x7f800000u) != 0x7f800000u) return;
  note_least(watch.not_finite, watch.load | static_cast<unsigned long long>(element));
}

// A block of threads for kColumnsPerBlock columns of a row.
__global__ void unpack(PackedRows from, Target to, Watch watch) {
  const int64_t row = blockIdx.x, begin = static_cast<int64_t>(blockIdx.y) * kColumnsPerBlock;
  const int64_t end = begin + kColumnsPerBlock < from.columns ? begin + kColumnsPerBlock : from.columns;
  for (int64_t column = begin + threadIdx.x; column < end; column += blockDim.x) {
    const int64_t element = to.first + row * to.row_step + column * to.column_step;
    const float value = packed_value(from, row, column);
    check_finite(value, watch, element);
    store({to.data, to.dtype}, element, value);
  }
}

// To the nearest integer, halves away from zero, of at most 127 in magnitude, as ggml's quantiser rounds.
__device__ inline int rounded(float value) {
  const float bounded = fminf(fabsf(value), 127.0f);
  const int whole = static_cast<int>(bounded);
  const int nearest = whole + (bounded - static_cast<float>(whole) >= 0.5f ? 1 : 0);
  return value < 0 ? -nearest : nearest;
}

// A thread for each block of q8_0, whose largest magnitude becomes 127.
__global__ void quantise(PackedRows from, Target to, Watch watch, int64_t count) {
  const int64_t index = thread_in_grid();
  if (index >= count) return;
  const int64_t blocks = from.columns / kBlock, row = index / blocks, begin = index % blocks * kBlock;
  const int64_t element = to.first + row * to.row_step + begin;
  uint8_t* block = reinterpret_cast<uint8_t*>(to.data) + element / kBlock * kBlockBytes;
  float largest = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    const float value = packed_value(from, row, begin + i);
    check_finite(value, watch, element + i);
    largest = fmaxf(largest, fabsf(value));
  }
  const float d = largest / 127.0f;
  const float inverse = d == 0 ? 0 : 1.0f / d;
  const uint16_t bits = f16_bits(d);
  block[0] = static_cast<uint8_t>(bits);
  block[1] = static_cast<uint8_t>(bits >> 8);
  for (int64_t i = 0; i < kBlock; ++i) {
    block[2 + i] = static_cast<uint8_t>(rounded(packed_value(from, row, begin + i) * inverse));
  }
}

}  // namespace

void launch_unpack(void* stream, const Chunk& chunk, const std::byte* packed, std::byte* to, DType dtype,
                   int64_t load, unsigned long long* not_finite) {
  const StoredPart& part = *chunk.part;
  const PackedLayout& layout = chunk.layout;
  const bool scaled = part.scales.data != nullptr;
  const PackedRows from{reinterpret_cast<const uint8_t*>(packed),
                        layout.pitch,
                        layout.scales_at,
                        chunk.columns,
                        layout.skip,
                        part.column_stride,
                        part.code,
                        part.dtype,
                        part.scales.code,
                        part.scales.dtype,
                        scaled ? part.scales.columns : 0,
                        layout.scales_skip};
  const Target target{to, dtype,
                      part.to + chunk.first_row * part.to_row + chunk.first_column * part.to_column,
                      part.to_row, part.to_column};
  const Watch watch{static_cast<unsigned long long>(load) << kElementBits, not_finite};
  KernelCall call;
  call.stream = stream;
  if (is_block_quantised(dtype)) {
    CHECK(dtype == DType::q8_0 && part.to_column == 1, dtype_name(dtype));
    const int64_t blocks = chunk.rows * (chunk.columns / kBlock);
    launch(call, quantise, blocks_for(blocks), kThreads, 0, from, target, watch, blocks);
    return;
  }
  const dim3 grid(static_cast<unsigned>(chunk.rows), blocks_for(chunk.columns, kColumnsPerBlock));
  launch(call, unpack, grid, kThreads, 0, from, target, watch);
}

}  // namespace tenon::cuda
