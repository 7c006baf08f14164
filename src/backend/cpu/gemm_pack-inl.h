// Packing of matrix blocks into the order the tile kernel reads: b as panels of kPanel columns, a as slivers
// of kSliver rows, k outermost in each, padded with zeros. This is where every dtype becomes f32. Included
// once per Highway target.
#if defined(TENON_BACKEND_CPU_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_GEMM_PACK_INL_H_
#undef TENON_BACKEND_CPU_GEMM_PACK_INL_H_
#else
#define TENON_BACKEND_CPU_GEMM_PACK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backend/cpu/convert-inl.h"
#include "backend/cpu/gemm_blocking.h"
#include "backend/cpu/simd-inl.h"
#include "base/threads.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kPanel = 2 * static_cast<int64_t>(kLanes);
constexpr int64_t kSliver = kLanes == 16 ? 12 : 6;  // accumulators fill the registers of the target
constexpr int64_t kChunk = 256;                     // elements widened at a time: whole blocks of every dtype

HWY_INLINE const std::byte* matrix_row(const GemmMatrix& matrix, int64_t row) {
  const DTypeInfo& info = dtype_info(matrix.dtype);
  return matrix.data + row * matrix.stride / info.block_elements * info.block_bytes;
}

// Elements [begin, begin + count) of a row as f32: in place where they already are, else widened into
// `buffer`.
HWY_INLINE const float* row_part(const GemmMatrix& matrix, int64_t row, int64_t begin, int64_t count,
                                 bool round, float* buffer) {
  const std::byte* data = matrix_row(matrix, row);
  if (matrix.dtype == DType::f32 && !round) return reinterpret_cast<const float*>(data) + begin;
  widen_row(matrix.dtype, data, begin, count, buffer);
  if (round && matrix.dtype != DType::bf16) round_in_place_to_bf16(buffer, count);
  return buffer;
}

#if HWY_TARGET != HWY_SCALAR
// out[p * stride + i] = rows[i][p] for four rows and four p.
HWY_INLINE void transpose_4x4(const float* const* rows, int64_t p, float* out, int64_t stride) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto r0 = hn::LoadU(d, rows[0] + p), r1 = hn::LoadU(d, rows[1] + p);
  const auto r2 = hn::LoadU(d, rows[2] + p), r3 = hn::LoadU(d, rows[3] + p);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  out += p * stride;
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, out + stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, out + 2 * stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, out + 3 * stride);
}
#endif

// out[p * stride + i] = rows[i][p] for p < count, and zero for i from `row_count` to `padded_rows`.
HWY_INLINE void transpose_rows(const float* const* rows, int64_t row_count, int64_t padded_rows,
                               int64_t count, float* out, int64_t stride) {
  int64_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  if (row_count >= 4) {
    done = count / 4 * 4;
    for (int64_t first = 0; first < row_count; first += 4) {
      const int64_t row = std::min(first, row_count - 4);
      for (int64_t p = 0; p < done; p += 4) transpose_4x4(rows + row, p, out + row, stride);
    }
  }
#endif
  for (int64_t p = done; p < count; ++p) {
    for (int64_t i = 0; i < row_count; ++i) std::memcpy(out + p * stride + i, rows[i] + p, sizeof(float));
  }
  if (row_count == padded_rows) return;
  for (int64_t p = 0; p < count; ++p) {
    std::fill(out + p * stride + row_count, out + p * stride + padded_rows, 0.0f);
  }
}

// Slivers or panels of `width` rows of `matrix` ("rows" are the axis that is padded), for its elements
// `depth` along k: group g goes to out + g * group_stride, k innermost in the source.
HWY_INLINE void pack_rows(const GemmMatrix& matrix, Range rows, Range depth, bool round, int64_t width,
                          float* out, int64_t group_stride) {
  HWY_ALIGN float buffer[kMostPanelColumns * kChunk];
  const float* pointers[kMostPanelColumns];
  for (int64_t first = rows.begin; first < rows.end; first += width, out += group_stride) {
    const int64_t count = std::min(width, rows.end - first);
    for (int64_t p = depth.begin; p < depth.end; p += kChunk) {
      const int64_t chunk = std::min(kChunk, depth.end - p);
      for (int64_t i = 0; i < count; ++i) {
        pointers[i] = row_part(matrix, first + i, p, chunk, round, buffer + i * kChunk);
      }
      transpose_rows(pointers, count, width, chunk, out + (p - depth.begin) * width, width);
    }
  }
}

template <int64_t kWidth>
HWY_INLINE void copy_group(const float* from, int64_t count, float* to) {
  if (count == kWidth) {
    std::memcpy(to, from, kWidth * sizeof(float));
    return;
  }
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  std::fill(to + count, to + kWidth, 0.0f);
}

// The same where k is the outer axis of the source: its row p holds the padded axis contiguously. Several
// rows are taken at a time, so that each group is written in runs longer than a cache line.
template <int64_t kWidth>
HWY_INLINE void pack_columns(const GemmMatrix& matrix, Range columns, Range depth, bool round, float* out,
                             int64_t group_stride) {
  constexpr int64_t kRows = 16, kStep = kChunk / kWidth * kWidth;
  HWY_ALIGN float buffer[kRows * kChunk];
  const float* rows[kRows];
  for (int64_t p = depth.begin; p < depth.end; p += kRows) {
    const int64_t row_count = std::min(kRows, depth.end - p);
    for (int64_t first = columns.begin; first < columns.end; first += kStep) {
      const int64_t part = std::min(kStep, columns.end - first);
      for (int64_t i = 0; i < row_count; ++i) {
        rows[i] = row_part(matrix, p + i, first, part, round, buffer + i * kChunk);
      }
      float* to = out + (first - columns.begin) / kWidth * group_stride + (p - depth.begin) * kWidth;
      for (int64_t j = 0; j < part; j += kWidth, to += group_stride) {
        const int64_t width = std::min(kWidth, part - j);
        for (int64_t i = 0; i < row_count; ++i) copy_group<kWidth>(rows[i] + j, width, to + i * kWidth);
      }
    }
  }
}

// Columns `columns` and rows `depth` of b as panels; panel g at out + g * panel_stride.
HWY_INLINE void pack_b(const GemmMatrix& b, Range columns, Range depth, bool round, float* out,
                       int64_t panel_stride) {
  if (b.transposed) {
    pack_rows(b, columns, depth, round, kPanel, out, panel_stride);
  } else {
    pack_columns<kPanel>(b, columns, depth, round, out, panel_stride);
  }
}

// Rows `rows` and columns `depth` of a as slivers; sliver g at out + g * sliver_stride.
HWY_INLINE void pack_a(const GemmMatrix& a, Range rows, Range depth, float* out, int64_t sliver_stride) {
  if (a.transposed) {
    pack_columns<kSliver>(a, rows, depth, false, out, sliver_stride);
  } else {
    pack_rows(a, rows, depth, false, kSliver, out, sliver_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
