// Kernels of loading: packed rows of stored values (loading.h) to elements of a weight, each rounded once,
// and the place of the first value that is not finite.
#include "backend/cuda/launch.h"
#include "backend/cuda/loading.h"
#include "backend/cuda/quantised.h"

namespace tenon::cuda {
namespace {

constexpr int64_t kBlock = 32;  // values of a q8_0 block
constexpr int64_t kBlockBytes = 34;
constexpr int kThreadsPerBlock = kBlock / kVector;

struct PackedRows {
  const uint8_t* data;
  int64_t pitch, scales_at;
  int64_t columns, skip, stride;
  StoredCode code;
  DType dtype;
  StoredCode scale_code;
  DType scale_dtype;
  int64_t scale_columns, scales_skip;  // columns 0: no scales
  bool vectors;                        // kVector values lie side by side, in one block and with one scale
};

// Element `first` + row * row_step + column * column_step of a weight.
struct Target {
  std::byte* data;
  DType dtype;
  int64_t first, row_step, column_step;
  bool vectors;  // kVector columns are side by side, at a multiple of kVector
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

// values[at] = value. An index that is known at run time only would take the array out of the registers.
__device__ inline void put(float (&values)[kVector], int at, float value) {
#pragma unroll
  for (int e = 0; e < kVector; ++e) {
    if (e == at) values[e] = value;
  }
}

template <DType kDType>
__device__ inline void quantised_vector(const uint8_t* data, uint32_t vector, float (&out)[kVector]) {
#pragma unroll
  for (uint32_t e = 0; e < kVector; ++e) out[e] = quantised_at(kDType, data, vector * kVector + e);
}

// Values kVector * vector .. + kVector of plain ones. The type is looked at once for all of them, and what
// they share of a block is read once.
__device__ inline void plain_vector(DType dtype, const uint8_t* data, uint32_t vector,
                                    float (&out)[kVector]) {
  switch (dtype) {
    case DType::f32:
    case DType::bf16:
    case DType::f16:
      return load_vector({reinterpret_cast<std::byte*>(const_cast<uint8_t*>(data)), dtype},
                         static_cast<int64_t>(vector) * kVector, out);
    case DType::q4_0:
      return quantised_vector<DType::q4_0>(data, vector, out);
    case DType::q4_1:
      return quantised_vector<DType::q4_1>(data, vector, out);
    case DType::q5_0:
      return quantised_vector<DType::q5_0>(data, vector, out);
    case DType::q5_1:
      return quantised_vector<DType::q5_1>(data, vector, out);
    case DType::q8_0:
      return quantised_vector<DType::q8_0>(data, vector, out);
    case DType::q2_k:
      return quantised_vector<DType::q2_k>(data, vector, out);
    case DType::q3_k:
      return quantised_vector<DType::q3_k>(data, vector, out);
    case DType::q4_k:
      return quantised_vector<DType::q4_k>(data, vector, out);
    case DType::q5_k:
      return quantised_vector<DType::q5_k>(data, vector, out);
    case DType::q6_k:
      return quantised_vector<DType::q6_k>(data, vector, out);
    default:
#pragma unroll 1
      for (int e = 0; e < kVector; ++e) put(out, e, plain_value(dtype, data, int64_t{vector} * kVector + e));
  }
}

// Values kVector * vector .. + kVector of a row, in the order of its columns.
__device__ inline void packed_vector(const PackedRows& from, int64_t row, uint32_t vector,
                                     float (&out)[kVector]) {
  const uint8_t* data = from.data + row * from.pitch;
  const uint32_t at = static_cast<uint32_t>(from.skip) / kVector + vector;
  if (from.code == StoredCode::plain) {
    plain_vector(from.dtype, data, at, out);
  } else if (from.code == StoredCode::mxfp4) {
    const uint32_t word = reinterpret_cast<const uint32_t*>(data)[at];
#pragma unroll
    for (int e = 0; e < kVector; ++e) out[e] = four_bit_value(static_cast<int>(word >> (4 * e)) & 15);
  } else {
    const auto* words = reinterpret_cast<const uint32_t*>(data) + 2 * at;
#pragma unroll
    for (int e = 0; e < kVector; ++e) {
      out[e] = byte_value(from.code, static_cast<uint8_t>(words[e / 4] >> (e % 4 * 8)));
    }
  }
  if (from.scale_columns == 0) return;
  const uint32_t scale_at =
      (static_cast<uint32_t>(from.scales_skip) + at * kVector) / static_cast<uint32_t>(from.scale_columns);
  const float scale = coded_value(from.scale_code, from.scale_dtype, data + from.scales_at, scale_at);
#pragma unroll
  for (int e = 0; e < kVector; ++e) out[e] *= scale;
}

// The first `count` of kVector values from a column on; zeros after them.
__device__ inline void packed_values(const PackedRows& from, int64_t row, uint32_t vector, int count,
                                     float (&out)[kVector]) {
  if (from.vectors) return packed_vector(from, row, vector, out);
#pragma unroll 1
  for (int e = 0; e < kVector; ++e) {
    put(out, e, e < count ? packed_value(from, row, int64_t{vector} * kVector + e) : 0.0f);
  }
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

// A thread for kVector columns of a row.
__global__ void unpack(PackedRows from, Target to, Watch watch, uint32_t vectors_per_row, uint32_t vectors) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= vectors) return;
  const uint32_t row = index / vectors_per_row, vector = index % vectors_per_row;
  const int64_t column = static_cast<int64_t>(vector) * kVector, left = from.columns - column;
  const int count = left < kVector ? static_cast<int>(left) : kVector;
  const int64_t first = to.first + row * to.row_step + column * to.column_step;
  float values[kVector];
  packed_values(from, row, vector, count, values);
#pragma unroll
  for (int e = 0; e < kVector; ++e) {
    if (e < count) check_finite(values[e], watch, first + e * to.column_step);
  }
  const Tensor weight{to.data, to.dtype};
  if (to.vectors) return store_vector(weight, first, values);
#pragma unroll
  for (int e = 0; e < kVector; ++e) {
    if (e < count) store(weight, first + e * to.column_step, values[e]);
  }
}

// To the nearest integer, halves away from zero, of at most 127 in magnitude, as ggml's quantiser rounds.
__device__ inline int rounded(float value) {
  const float bounded = fminf(fabsf(value), 127.0f);
  const int whole = static_cast<int>(bounded);
  const int nearest = whole + (bounded - static_cast<float>(whole) >= 0.5f ? 1 : 0);
  return value < 0 ? -nearest : nearest;
}

// kThreadsPerBlock threads for each block of q8_0, whose largest magnitude becomes 127. All of a warp come
// to the maximum, those after the last value too.
__global__ void quantise(PackedRows from, Target to, Watch watch, uint32_t vectors_per_row,
                         uint32_t vectors) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  const bool exists = index < vectors;
  const uint32_t row = exists ? index / vectors_per_row : 0, vector = exists ? index % vectors_per_row : 0;
  const int64_t element = to.first + row * to.row_step + static_cast<int64_t>(vector) * kVector;
  float values[kVector];
  packed_values(from, row, vector, kVector, values);
  float largest = 0;
#pragma unroll
  for (int e = 0; e < kVector; ++e) {
    if (exists) check_finite(values[e], watch, element + e);
    largest = fmaxf(largest, fabsf(values[e]));
  }
  for (int offset = kThreadsPerBlock / 2; offset > 0; offset /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, offset));
  }
  if (!exists) return;
  const float d = largest / 127.0f;
  const float inverse = d == 0 ? 0 : 1.0f / d;
  auto* block = reinterpret_cast<uint16_t*>(to.data) + element / kBlock * (kBlockBytes / 2);
  if (element % kBlock == 0) block[0] = f16_bits(d);
  uint16_t* pairs = block + 1 + element % kBlock / 2;
#pragma unroll
  for (int e = 0; e < kVector; e += 2) {
    const int low = rounded(values[e] * inverse) & 0xff, high = rounded(values[e + 1] * inverse) & 0xff;
    pairs[e / 2] = static_cast<uint16_t>(low | high << 8);
  }
}

}  // namespace

void launch_unpack(void* stream, const Chunk& chunk, const std::byte* packed, std::byte* to, DType dtype,
                   int64_t load, unsigned long long* not_finite) {
  const StoredPart& part = *chunk.part;
  const PackedLayout& layout = chunk.layout;
  const auto whole_vectors = [](auto... counts) { return ((counts % kVector == 0) && ...); };
  PackedRows from{reinterpret_cast<const uint8_t*>(packed),
                  layout.pitch,
                  layout.scales_at,
                  chunk.columns,
                  layout.skip,
                  part.column_stride,
                  part.code,
                  part.dtype,
                  part.scales.code,
                  part.scales.dtype,
                  part.scales.data != nullptr ? part.scales.columns : 0,
                  layout.scales_skip,
                  false};
  from.vectors =
      from.stride == 1 && whole_vectors(from.columns, from.skip, from.scale_columns, from.scales_skip);
  Target target{to,
                dtype,
                part.to + chunk.first_row * part.to_row + chunk.first_column * part.to_column,
                part.to_row,
                part.to_column,
                false};
  target.vectors = target.column_step == 1 && whole_vectors(from.columns, target.first, target.row_step);
  const Watch watch{static_cast<unsigned long long>(load) << kElementBits, not_finite};
  const auto per_row = static_cast<uint32_t>(ceil_div(chunk.columns, kVector));
  const auto vectors = static_cast<uint32_t>(chunk.rows * per_row);
  KernelCall call;
  call.stream = stream;
  if (is_block_quantised(dtype)) {
    CHECK(dtype == DType::q8_0 && part.to_column == 1 && chunk.columns % kBlock == 0, dtype_name(dtype));
    launch(call, quantise, blocks_for(vectors), kThreads, 0, from, target, watch, per_row, vectors);
    return;
  }
  launch(call, unpack, blocks_for(vectors), kThreads, 0, from, target, watch, per_row, vectors);
}

}  // namespace tenon::cuda
