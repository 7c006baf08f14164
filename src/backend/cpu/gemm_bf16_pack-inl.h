// Packing for products in bf16 (gemm_bf16_tile.h): a as rows with k innermost, b as panels of
// kBf16PanelColumns columns whose rows hold pairs along k. Both are padded with zeros. Included once per
// Highway target.
#if defined(TENON_BACKEND_CPU_GEMM_BF16_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_GEMM_BF16_PACK_INL_H_
#undef TENON_BACKEND_CPU_GEMM_BF16_PACK_INL_H_
#else
#define TENON_BACKEND_CPU_GEMM_BF16_PACK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backend/cpu/gemm_bf16_tile.h"
#include "backend/cpu/gemm_pack-inl.h"
#include "base/checked_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// Elements [begin, begin + count) of a row, rounded to bf16, then zeros up to `padded`; begin is a multiple
// of kChunk where the row is of blocks.
HWY_INLINE void copy_bf16_row(const GemmMatrix& matrix, int64_t row, int64_t begin, int64_t count,
                              int64_t padded, uint16_t* out) {
  const std::byte* data = matrix_row(matrix, row);
  if (matrix.dtype == DType::bf16) {
    std::memcpy(out, data + begin * 2, static_cast<size_t>(count) * 2);
  } else {
    HWY_ALIGN float buffer[kChunk];
    for (int64_t i = 0; i < count; i += kChunk) {
      const int64_t chunk = std::min(kChunk, count - i);
      const float* values = row_part(matrix, row, begin + i, chunk, false, buffer);
      round_row(DType::bf16, values, chunk, reinterpret_cast<std::byte*>(out + i));
    }
  }
  std::fill(out + count, out + padded, uint16_t{0});
}

// Whether kChunk elements of a row may be read as words of two where they lie.
HWY_INLINE bool lies_in_pairs(const GemmMatrix& matrix) {
  return matrix.dtype == DType::bf16 && matrix.stride % 2 == 0 &&
         reinterpret_cast<uintptr_t>(matrix.data) % sizeof(uint32_t) == 0;
}

// Panels of the columns of b where k is innermost in its rows: words of two are transposed.
HWY_INLINE void pack_pairs_of_rows(const GemmMatrix& b, Range columns, Range depth, uint32_t* out,
                                   int64_t panel_stride) {
  HWY_ALIGN float buffer[kBf16PanelColumns * kChunk / 2];
  const float* rows[kBf16PanelColumns];
  const bool in_place = lies_in_pairs(b);
  for (int64_t first = columns.begin; first < columns.end; first += kBf16PanelColumns, out += panel_stride) {
    const int64_t count = std::min(kBf16PanelColumns, columns.end - first);
    for (int64_t p = depth.begin; p < depth.end; p += kChunk) {
      const int64_t chunk = std::min(kChunk, depth.end - p), padded = round_up(chunk, kBf16DepthUnit);
      for (int64_t i = 0; i < count; ++i) {
        if (in_place && chunk == padded) {
          rows[i] = reinterpret_cast<const float*>(matrix_row(b, first + i) + p * 2);
          continue;
        }
        float* row = buffer + i * kChunk / 2;
        copy_bf16_row(b, first + i, p, chunk, padded, reinterpret_cast<uint16_t*>(row));
        rows[i] = row;
      }
      uint32_t* to = out + (p - depth.begin) / 2 * kBf16PanelColumns;
      transpose_rows(rows, count, kBf16PanelColumns, padded / 2, reinterpret_cast<float*>(to),
                     kBf16PanelColumns);
    }
  }
}

// out[j] = the pair of low[j] and high[j].
HWY_INLINE void interleave(const uint16_t* low, const uint16_t* high, uint32_t* out) {
  const hn::RebindToUnsigned<DF> d32;
  const hn::Rebind<uint16_t, DF> d16;
  for (int64_t j = 0; j < kBf16PanelColumns; j += static_cast<int64_t>(kLanes)) {
    const auto lower = hn::PromoteTo(d32, hn::LoadU(d16, low + j));
    const auto upper = hn::PromoteTo(d32, hn::LoadU(d16, high + j));
    hn::StoreU(hn::Or(lower, hn::ShiftLeft<16>(upper)), d32, out + j);
  }
}

// The same where k is the outer axis of b.
HWY_INLINE void pack_pairs_of_columns(const GemmMatrix& b, Range columns, Range depth, uint32_t* out,
                                      int64_t panel_stride) {
  HWY_ALIGN uint16_t rows[2][kChunk];
  const int64_t depth_end = depth.begin + round_up(depth.size(), kBf16DepthUnit);
  for (int64_t p = depth.begin; p < depth_end; p += 2) {
    for (int64_t first = columns.begin; first < columns.end; first += kChunk) {
      const int64_t count = std::min(kChunk, columns.end - first);
      const int64_t padded = round_up(count, kBf16PanelColumns);
      for (int64_t i = 0; i < 2; ++i) {
        if (p + i < depth.end) {
          copy_bf16_row(b, p + i, first, count, padded, rows[i]);
        } else {
          std::fill(rows[i], rows[i] + padded, uint16_t{0});
        }
      }
      uint32_t* to = out + (first - columns.begin) / kBf16PanelColumns * panel_stride +
                     (p - depth.begin) / 2 * kBf16PanelColumns;
      for (int64_t j = 0; j < count; j += kBf16PanelColumns, to += panel_stride) {
        interleave(rows[0] + j, rows[1] + j, to);
      }
    }
  }
}

// Columns `columns` and rows `depth` of b as panels; panel g at out + g * panel_stride. depth.begin is a
// multiple of kChunk where rows are of blocks.
HWY_INLINE void pack_pairs(const GemmMatrix& b, Range columns, Range depth, uint32_t* out,
                           int64_t panel_stride) {
  if (b.transposed) {
    pack_pairs_of_rows(b, columns, depth, out, panel_stride);
  } else {
    pack_pairs_of_columns(b, columns, depth, out, panel_stride);
  }
}

// Rows `rows` and columns `depth` of a, `padded_depth` apart, and rows of zeros up to `padded_rows`.
HWY_INLINE void pack_bf16_rows(const GemmMatrix& a, Range rows, Range depth, int64_t padded_rows,
                               int64_t padded_depth, uint16_t* out) {
  constexpr int64_t kStep = kBf16DepthUnit;
  std::fill(out + rows.size() * padded_depth, out + padded_rows * padded_depth, uint16_t{0});
  if (!a.transposed) {
    for (int64_t i = rows.begin; i < rows.end; ++i, out += padded_depth) {
      copy_bf16_row(a, i, depth.begin, depth.size(), padded_depth, out);
    }
    return;
  }
  HWY_ALIGN float wide[kStep * kChunk], turned[kChunk * kStep];
  const float* pointers[kStep];
  for (int64_t p = depth.begin; p < depth.end; p += kStep) {
    const int64_t count = std::min(kStep, depth.end - p);
    for (int64_t i = 0; i < count; ++i) {
      pointers[i] = row_part(a, p + i, rows.begin, rows.size(), false, wide + i * kChunk);
    }
    transpose_rows(pointers, count, kStep, rows.size(), turned, kStep);
    for (int64_t i = 0; i < rows.size(); ++i) {
      bf16* to = reinterpret_cast<bf16*>(out + i * padded_depth + p - depth.begin);
      for (int64_t j = 0; j < kStep; j += static_cast<int64_t>(kLanes)) {
        store(load(turned + i * kStep + j), to + j);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
