// Rows of activations times a row of blocks of four-bit numbers (q4_0 and q4_1). A vector of 32-bit lanes
// holds the numbers of kVectorBlocks blocks, eight in each lane. Masked where they lie, the number at bit 4j
// counts 16^j: the activations that it meets carry the inverse, which is exact. Included once per Highway
// target.
#if defined(TENON_BACKEND_CPU_FEW_ROWS_NIBBLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_FEW_ROWS_NIBBLES_INL_H_
#undef TENON_BACKEND_CPU_FEW_ROWS_NIBBLES_INL_H_
#else
#define TENON_BACKEND_CPU_FEW_ROWS_NIBBLES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "backend/cpu/dequantise-inl.h"
#include "backend/cpu/few_rows-inl.h"
#include "backend/cpu/few_rows_blocks.h"
#include "backend/cpu/simd-inl.h"
#include "base/checked_math.h"
#include "base/half.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kStep = static_cast<int64_t>(kLanes);

// A weight is scale * number + offset: a block begins with a scale d and, in q4_1, with the offset; in q4_0
// the offset is -8 d. Of the first four bytes, as two halves, kHeaderMask leaves what belongs to the header.
struct FormatQ4_0 {
  static constexpr int64_t kBytes = 18, kHeaderBytes = 2;
  static constexpr uint32_t kHeaderMask = 0xffff;
  // What the two halves are multiplied with, for the block's sum of activations.
  static void offsets(float sum, float* out) {
    out[0] = -8 * sum;
    out[1] = 0;
  }
};
struct FormatQ4_1 {
  static constexpr int64_t kBytes = 20, kHeaderBytes = 4;
  static constexpr uint32_t kHeaderMask = 0xffffffff;
  static void offsets(float sum, float* out) {
    out[0] = 0;
    out[1] = sum;
  }
};

inline float sum_of_block(const float* values) {
  float sum = 0;
  for (int64_t i = 0; i < kBlock; ++i) sum += values[i];
  return sum;
}

#if HWY_TARGET == HWY_SCALAR

template <typename Format>
void prepare_nibbles(const float* values, int64_t blocks, float* out, float* offsets) {
  std::copy_n(values, blocks * kBlock, out);
  for (int64_t b = 0; b < blocks; ++b) Format::offsets(sum_of_block(values + b * kBlock), offsets + 2 * b);
}

template <typename Format, int kRows, int kColumns>
void multiply_nibbles(const uint8_t* weights, const BlockActivations& a, float* out) {
  for (int i = 0; i < kRows * kColumns; ++i) {
    const int row = i / kColumns, column = i % kColumns;
    float sum = 0;
    for (int64_t b = 0; b < a.blocks; ++b) {
      const uint8_t* block = weights + (column * a.blocks + b) * Format::kBytes;
      const uint8_t* numbers = block + Format::kHeaderBytes;
      const float* x = a.row(row) + b * kBlock;
      const float* offsets = a.offsets + row * a.offset_stride + 2 * b;
      float dot = 0;
      for (int n = 0; n < 16; ++n) {
        dot += static_cast<float>(numbers[n] & 15) * x[n] + static_cast<float>(numbers[n] >> 4) * x[16 + n];
      }
      const float scale = read_f16(block), second = Format::kHeaderBytes == 4 ? read_f16(block + 2) : 0.0f;
      sum += scale * dot + scale * offsets[0] + second * offsets[1];
    }
    out[row * kColumnBlock + column] = sum;
  }
}

#else

using DU = hn::RebindToUnsigned<DF>;
using VU = hn::Vec<DU>;

constexpr int64_t kVectorBlocks = kStep / 4;
constexpr int64_t kGroupBlocks = 2 * kVectorBlocks;  // whose headers, two halves each, fill a vector

// The rows' padding, which is more than a group, is zero: a group's blocks past the end count nothing.
template <typename Format>
void prepare_nibbles(const float* values, int64_t blocks, float* out, float* offsets) {
  const int64_t padded = round_up(blocks, kMostBlocksAtATime);
  std::fill(out + blocks * kBlock / (kStep * 8) * (kStep * 8), out + padded * kBlock, 0.0f);
  std::fill(offsets + blocks * 2, offsets + padded * 2, 0.0f);
  for (int64_t b = 0; b < blocks; ++b) {
    const float* x = values + b * kBlock;
    float* to = out + b / kVectorBlocks * (8 * kStep) + b % kVectorBlocks * 4;
    float factor = 1;
    for (int j = 0; j < 8; ++j) {  // word w of the block holds numbers of bytes 4w to 4w + 3
      const float* from = x + j / 2 + j % 2 * 16;
      if (j == 7) factor = 1;  // this one is shifted down
      for (int w = 0; w < 4; ++w) to[j * kStep + w] = from[4 * w] * factor;
      factor *= 0.0625f;
    }
    Format::offsets(sum_of_block(x), offsets + 2 * b);
  }
}

// Blocks of a row from one on; where fewer than a group are left the last is read again.
template <typename Format, bool kWhole>
struct BlockGroup {
  const uint8_t* first;
  int64_t left;

  HWY_INLINE const uint8_t* at(int64_t index) const {
    return first + (kWhole ? index : std::min(index, left - 1)) * Format::kBytes;
  }
  HWY_INLINE auto quarter(int64_t index, int64_t offset) const {
    return hn::LoadU(hn::FixedTag<uint32_t, 4>(), reinterpret_cast<const uint32_t*>(at(index) + offset));
  }

  // The first words of blocks [index, index + 4).
  HWY_INLINE auto four_headers(int64_t index) const {
    const hn::FixedTag<uint32_t, 4> d;
    const hn::FixedTag<uint64_t, 2> pairs;
    const auto low = hn::InterleaveLower(d, quarter(index, 0), quarter(index + 1, 0));
    const auto high = hn::InterleaveLower(d, quarter(index + 2, 0), quarter(index + 3, 0));
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, low), hn::BitCast(pairs, high)));
  }
  // Two halves a block, as f32.
  HWY_INLINE VF headers() const {
    const hn::FixedTag<uint32_t, kStep / 2> words;
    const hn::Rebind<hwy::float16_t, DF> halves;
    const auto mask = hn::Set(words, Format::kHeaderMask);
    if constexpr (kStep == 8) {
      return hn::PromoteTo(DF(), hn::BitCast(halves, hn::And(four_headers(0), mask)));
    } else {
      const auto all = hn::Combine(words, four_headers(4), four_headers(0));
      return hn::PromoteTo(DF(), hn::BitCast(halves, hn::And(all, mask)));
    }
  }
  // The packed numbers of vector `index`.
  HWY_INLINE VU numbers(int64_t index) const {
    const int64_t block = index * kVectorBlocks;
    const hn::FixedTag<uint32_t, 8> half;
    const auto low =
        hn::Combine(half, quarter(block + 1, Format::kHeaderBytes), quarter(block, Format::kHeaderBytes));
    if constexpr (kStep == 8) {
      return low;
    } else {
      return hn::Combine(DU(),
                         hn::Combine(half, quarter(block + 3, Format::kHeaderBytes),
                                     quarter(block + 2, Format::kHeaderBytes)),
                         low);
    }
  }
};

// Lanes of the headers that hold the scale of each lane's block, for vector `index` of a group.
HWY_INLINE auto scale_lanes(int64_t index) {
  const hn::RebindToSigned<DF> d;
  const auto in_vector = hn::ShiftLeft<1>(hn::ShiftRight<2>(hn::Iota(d, 0)));
  return hn::IndicesFromVec(DF(), hn::Add(in_vector, hn::Set(d, static_cast<int32_t>(index * kStep / 2))));
}

// Number `j` of each lane times 16^j, or as it is for the last, whose place is the sign's.
HWY_INLINE VF number(VU packed, int j) {
  const hn::RebindToSigned<DF> d32;
  const VU bits = j == 7 ? hn::ShiftRight<28>(packed) : hn::And(packed, hn::Set(DU(), 15u << (4 * j)));
  return hn::ConvertTo(DF(), hn::BitCast(d32, bits));
}

// The sums of kRows rows of activations and kColumns rows of weights.
template <int kRows, int kColumns>
struct RowSums {
  VF at[kColumns][kRows];

  HWY_INLINE void clear() {
    each([&](int column, int row) HWY_ATTR { at[column][row] = hn::Zero(DF()); });
  }
  // f(column, row) for all of them.
  template <typename F>
  static HWY_INLINE void each(F f) {
#pragma GCC unroll 2
    for (int column = 0; column < kColumns; ++column) {
#pragma GCC unroll 8
      for (int row = 0; row < kRows; ++row) f(column, row);
    }
  }
};

// Adds the first `vectors` vectors of a group of each row of weights, from block `block` of the activations
// on, to the sums.
template <int kRows, int kColumns, typename Group>
HWY_INLINE void add_group(const Group (&groups)[kColumns], int64_t vectors, const BlockActivations& a,
                          int64_t block, RowSums<kRows, kColumns>& sums) {
  using Sums = RowSums<kRows, kColumns>;
  VF headers[kColumns];
#pragma GCC unroll 2
  for (int column = 0; column < kColumns; ++column) headers[column] = groups[column].headers();
  Sums::each([&](int column, int row) HWY_ATTR {
    const VF offsets = load(a.offsets + row * a.offset_stride + 2 * block);
    sums.at[column][row] = hn::MulAdd(headers[column], offsets, sums.at[column][row]);
  });
#pragma GCC unroll 2
  for (int64_t v = 0; v < vectors; ++v) {
    const float* x = a.values + block * kBlock + v * 8 * kStep;
    VU packed[kColumns];
#pragma GCC unroll 2
    for (int column = 0; column < kColumns; ++column) packed[column] = groups[column].numbers(v);
    Sums dots;
    dots.clear();
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      VF values[kColumns];
#pragma GCC unroll 2
      for (int column = 0; column < kColumns; ++column) values[column] = number(packed[column], j);
      Sums::each([&](int column, int row) HWY_ATTR {
        const VF activations = load(x + row * a.value_stride + j * kStep);
        dots.at[column][row] = hn::MulAdd(values[column], activations, dots.at[column][row]);
      });
    }
    Sums::each([&](int column, int row) HWY_ATTR {
      const VF scales = hn::TableLookupLanes(headers[column], scale_lanes(v));
      sums.at[column][row] = hn::MulAdd(scales, dots.at[column][row], sums.at[column][row]);
    });
  }
}

// out[row * kColumnBlock + column] = a's row · the weights' row `column`. One row of activations is
// multiplied by two of weights at a time: multiply-adds of one would wait for each other.
template <typename Format, int kRows, int kColumns>
void multiply_nibbles(const uint8_t* weights, const BlockActivations& a, float* out) {
  RowSums<kRows, kColumns> sums;
  sums.clear();
  const auto at = [&](int64_t block, int column) {
    return weights + (column * a.blocks + block) * Format::kBytes;
  };
  int64_t block = 0;
  for (; block + kGroupBlocks <= a.blocks; block += kGroupBlocks) {
    BlockGroup<Format, true> groups[kColumns];
#pragma GCC unroll 2
    for (int column = 0; column < kColumns; ++column) {
      prefetch_ahead<kGroupBlocks * Format::kBytes>(at(block, column));
      groups[column] = {at(block, column), kGroupBlocks};
    }
    add_group(groups, 2, a, block, sums);
  }
  if (const int64_t left = a.blocks - block; left > 0) {
    BlockGroup<Format, false> groups[kColumns];
#pragma GCC unroll 2
    for (int column = 0; column < kColumns; ++column) groups[column] = {at(block, column), left};
    add_group(groups, left > kVectorBlocks ? 2 : 1, a, block, sums);
  }
  RowSums<kRows, kColumns>::each(
      [&](int column, int row) HWY_ATTR { out[row * kColumnBlock + column] = sum_of(sums.at[column][row]); });
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
