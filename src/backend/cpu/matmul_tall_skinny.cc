// a^T · b over many rows of which one operand has few columns, as the gradients of LoRA's matrices are. The
// wide operand comes from memory: it is read once, whole rows in order, and asked for ahead. Slices of rows
// are summed apart and then added in order; the sizes alone say how many, so that any number of threads gives
// the same bits.
#include "backend/cpu/matmul_tall_skinny.h"

#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul_tall_skinny.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "backend/cpu/gemm_pack-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/checked_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// A tile of sums, of narrow by wide columns, fills the registers of the target.
constexpr int64_t kTileRows = kLanes == 16 ? 8 : 4;
constexpr int64_t kTileVectors = 3;
constexpr int64_t kLane = static_cast<int64_t>(kLanes);
constexpr int64_t kStrip = kTileVectors * kLane;
static_assert(kMostTileRows % kTileRows == 0 && kMostStrip % kStrip == 0);

// out[i, j], or out[j, i] where it is turned, = alpha * sum over p of narrow[p, i] * wide[p, j] (+ addend).
template <typename T>
struct TallSkinny {
  int64_t rows, few, many;
  const T* narrow;  // [rows, few]
  const T* wide;    // [rows, many]
  float alpha;
  const float* addend;  // as out; null: none
  float* out;
  bool turned;
};

// Steps of a tile's depth between two calls of BlockAhead::ask.
constexpr int64_t kStepsOfAsking = 4;

// A block of the wide operand, `rows` by `columns`, that is asked for line by line in the order of memory:
// the one that comes next, and so evenly that few requests at a time stand beside the products they hide
// behind.
template <typename T>
class BlockAhead {
 public:
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));

  BlockAhead(const T* block, int64_t rows, int64_t columns, int64_t stride)
      : line_(block),
        row_end_(block + columns),
        rows_(rows),
        stride_(stride),
        skip_(stride - round_up(columns, kLine)) {}

  // The next `lines` of them, none where all have been.
  HWY_INLINE void ask(int64_t lines) {
    for (int64_t i = 0; i < lines && rows_ > 0; ++i) {
      __builtin_prefetch(line_, 0, 2);
      line_ += kLine;
      if (line_ < row_end_) continue;
      line_ += skip_;
      row_end_ += stride_;
      --rows_;
    }
  }

 private:
  const T *line_, *row_end_;
  int64_t rows_, stride_, skip_;
};

// The sums of one slice of rows, all narrow columns by a part of the wide ones.
struct SliceSums {
  float* data;
  int64_t stride;
  bool first;  // nothing is there yet
};

// sums[i, j] += sum over p < depth of narrow[p, i] * row p of a strip, for a tile. `load_row` gives the rows
// of the strip one after the other, `ask` is called between them.
template <typename LoadRow, typename Ask>
HWY_INLINE void add_strip_tile(int64_t depth, const float* HWY_RESTRICT narrow, int64_t narrow_stride,
                               LoadRow load_row, Ask ask, const SliceSums& sums) {
  VF tile[kTileRows][kTileVectors], row[kTileVectors];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kTileRows; ++i) tile[i][0] = tile[i][1] = tile[i][2] = hn::Zero(DF());
  for (int64_t p = 0; p < depth;) {
    ask();
    for (const int64_t end = std::min(p + kStepsOfAsking, depth); p < end; ++p, narrow += narrow_stride) {
      load_row(row);
#pragma GCC unroll 8
      for (int64_t i = 0; i < kTileRows; ++i) {
        const VF value = hn::Set(DF(), narrow[i]);
#pragma GCC unroll 3
        for (int64_t j = 0; j < kTileVectors; ++j) tile[i][j] = hn::MulAdd(value, row[j], tile[i][j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 3
    for (int64_t j = 0; j < kTileVectors; ++j) {
      float* sum = sums.data + i * sums.stride + j * kLane;
      store(sums.first ? tile[i][j] : hn::Add(load(sum), tile[i][j]), sum);
    }
  }
}

// One strip by all narrow columns. The first tile copies the strip as it goes, so that for the others its
// rows lie side by side: rows of the tensor may all fall into the same few sets of the first cache.
template <typename T>
HWY_INLINE void add_strip(int64_t depth, const float* narrow, int64_t padded_few, const T* HWY_RESTRICT wide,
                          int64_t stride, BlockAhead<T>& ahead, int64_t lines, float* HWY_RESTRICT copy,
                          SliceSums sums) {
  const auto ask = [&]() HWY_ATTR { ahead.ask(lines); };
  float* to = copy;
  const auto copy_row = [&](VF* row) HWY_ATTR {
#pragma GCC unroll 3
    for (int64_t j = 0; j < kTileVectors; ++j) {
      row[j] = load(wide + j * kLane);
      store(row[j], to + j * kLane);
    }
    wide += stride;
    to += kStrip;
  };
  add_strip_tile(depth, narrow, padded_few, copy_row, ask, sums);
  for (int64_t i = kTileRows; i < padded_few; i += kTileRows) {
    const float* from = copy;
    const auto load_row = [&](VF* row) HWY_ATTR {
#pragma GCC unroll 3
      for (int64_t j = 0; j < kTileVectors; ++j) row[j] = load(from + j * kLane);
      from += kStrip;
    };
    sums.data += kTileRows * sums.stride;
    add_strip_tile(depth, narrow + i, padded_few, load_row, ask, sums);
  }
}

// Rows of the narrow operand as f32, their columns padded with zeros to whole tiles.
template <typename T>
void widen_narrow(const T* narrow, int64_t depth, int64_t few, int64_t padded_few, float* out) {
  constexpr DType kDType = sizeof(T) == 2 ? DType::bf16 : DType::f32;
  const std::byte* data = reinterpret_cast<const std::byte*>(narrow);
  if (few == padded_few) return widen_row(kDType, data, 0, depth * few, out);
  for (int64_t p = 0; p < depth; ++p, out += padded_few) {
    widen_row(kDType, data, p * few, few, out);
    std::fill(out + few, out + padded_few, 0.0f);
  }
}

// The sums of `rows` by the wide columns `columns`, in blocks of rows that stay in the second cache.
template <typename T>
void sum_slice(const TallSkinny<T>& call, Range rows, Range columns, float* workspace, float* sums,
               int64_t sums_stride) {
  float *narrow = workspace, *copy = workspace + kMostBlockRows * round_up(call.few, kMostTileRows);
  const int64_t padded_few = round_up(call.few, kTileRows), step = block_rows(columns.size());
  const int64_t tiles = ceil_div(columns.size(), kStrip) * (padded_few / kTileRows);
  const int64_t lines = ceil_div(kStepsOfAsking * ceil_div(columns.size(), BlockAhead<T>::kLine), tiles);
  for (int64_t row = rows.begin; row < rows.end; row += step) {
    const int64_t depth = std::min(step, rows.end - row), next = row + depth;
    widen_narrow(call.narrow + row * call.few, depth, call.few, padded_few, narrow);
    BlockAhead<T> ahead(call.wide + next * call.many + columns.begin, std::min(step, call.rows - next),
                        columns.size(), call.many);
    for (int64_t column = columns.begin; column < columns.end; column += kStrip) {
      const T* wide = call.wide + row * call.many + column;
      const SliceSums to{sums + column, sums_stride, row == rows.begin};
      if (const int64_t width = columns.end - column; width >= kStrip) {
        add_strip(depth, narrow, padded_few, wide, call.many, ahead, lines, copy, to);
      } else {
        HWY_ALIGN T padded[kMostBlockRows * kStrip] = {};
        for (int64_t p = 0; p < depth; ++p) std::copy_n(wide + p * call.many, width, padded + p * kStrip);
        add_strip(depth, narrow, padded_few, padded, kStrip, ahead, lines, copy, to);
      }
    }
  }
}

// out = alpha * values (+ addend) for `count` of its elements from `at` on.
template <typename T>
void finish_elements(const TallSkinny<T>& call, const float* values, int64_t at, int64_t count) {
  const VF alpha = hn::Set(DF(), call.alpha);
  const float* addend = call.addend == nullptr ? nullptr : call.addend + at;
  float* out = call.out + at;
  int64_t i = 0;
  for (; i + kLane <= count; i += kLane) {
    const VF old = addend == nullptr ? hn::Zero(DF()) : load(addend + i);
    store(hn::MulAdd(load(values + i), alpha, old), out + i);
  }
  if (i == count) return;
  const size_t rest = static_cast<size_t>(count - i);
  const VF old = addend == nullptr ? hn::Zero(DF()) : load_part(addend + i, rest);
  store_part(hn::MulAdd(load_part(values + i, rest), alpha, old), out + i, rest);
}

// The slices' sums of the wide columns `columns`, added in the order of the slices.
template <typename T>
void add_slices(const TallSkinny<T>& call, const TallSkinnySplit& split, const float* partial,
                Range columns) {
  constexpr int64_t kColumns = 64;
  HWY_ALIGN float sums[kMostFew * kColumns], turned[kMostFew * kColumns];
  const float* rows[kMostFew];
  for (int64_t begin = columns.begin; begin < columns.end; begin += kColumns) {
    const int64_t width = std::min(kColumns, columns.end - begin);
    for (int64_t i = 0; i < call.few; ++i) {
      rows[i] = sums + i * kColumns;
      for (int64_t j = 0; j < width; j += kLane) {
        const float* from = partial + i * split.stride + begin + j;
        VF sum = load(from);
        for (int64_t s = 1; s < split.slices; ++s) sum = hn::Add(sum, load(from + s * split.slice_floats));
        store(sum, sums + i * kColumns + j);
      }
      if (!call.turned) finish_elements(call, rows[i], i * call.many + begin, width);
    }
    if (!call.turned) continue;
    transpose_rows(rows, call.few, call.few, width, turned, call.few);
    finish_elements(call, turned, begin * call.few, width * call.few);
  }
}

template <typename T>
void multiply_slices(const TallSkinny<T>& call, std::span<std::byte> workspace, ThreadPool& threads) {
  const TallSkinnySplit split = tall_skinny_split(call.rows, call.few, call.many);
  float* partial = reinterpret_cast<float*>(workspace.data());
  threads.run([&](int thread) {
    float* own = partial + split.slices * split.slice_floats + thread * tall_skinny_thread_floats(call.few);
    const Range items = split_range(split.slices * split.parts, threads.size(), thread);
    for (int64_t item = items.begin; item < items.end; ++item) {
      const auto slice = static_cast<int>(item % split.slices), part = static_cast<int>(item / split.slices);
      sum_slice(call, split_range(call.rows, split.slices, slice),
                split_range(call.many, split.parts, part, kMostStrip), own,
                partial + slice * split.slice_floats, split.stride);
    }
  });
  threads.parallel_for(call.many, kMostStrip,
                       [&](Range columns) { add_slices(call, split, partial, columns); });
}

template <typename T>
void multiply_tall_skinny_as(const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1];
  const bool turned = b.type.shape[1] < a.type.shape[1];
  const TensorView &narrow = turned ? b : a, &wide = turned ? a : b;
  multiply_slices<T>({.rows = a.type.shape[0],
                      .few = narrow.type.shape[1],
                      .many = wide.type.shape[1],
                      .narrow = reinterpret_cast<const T*>(narrow.data),
                      .wide = reinterpret_cast<const T*>(wide.data),
                      .alpha = static_cast<float>(call.attrs->real("alpha")),
                      .addend = call.inputs.size() == 3 ? input_as<float>(call, 2) : nullptr,
                      .out = output_as<float>(call, 0),
                      .turned = turned},
                     call.workspace, *call.threads);
}

void multiply_tall_skinny(const KernelCall& call) {
  if (call.inputs[0].type.dtype == DType::bf16) return multiply_tall_skinny_as<bf16>(call);
  multiply_tall_skinny_as<float>(call);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(multiply_tall_skinny);

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Type &a = site.inputs[0], &b = site.inputs[1], &out = site.outputs[0];
  if (facts.kind != DeviceKind::cpu || !is_vector_dtype(a.dtype) || a.dtype != b.dtype) return false;
  if (!site.attrs.flag("trans_a") || site.attrs.flag("trans_b") || out.dtype != DType::f32) return false;
  if (site.inputs.size() == 3 && site.inputs[2] != out) return false;
  const int64_t few = std::min(a.shape[1], b.shape[1]), many = std::max(a.shape[1], b.shape[1]);
  return a.shape[0] > 0 && few > 0 && few <= kMostFew && many >= kManyColumns * few;
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const Shape &a = site.inputs[0].shape, &b = site.inputs[1].shape;
  const int64_t few = std::min(a[1], b[1]);
  const TallSkinnySplit split = tall_skinny_split(a[0], few, std::max(a[1], b[1]));
  return 4 * (split.slices * split.slice_floats + facts.threads * tall_skinny_thread_floats(few));
}

}  // namespace

const KernelDef& matmul_tall_skinny_kernel() {
  static constexpr KernelDef def{.op = "matmul",
                                 .name = "matmul_tall_skinny",
                                 .serves = serves,
                                 .workspace_bytes = workspace_bytes,
                                 // Less than on a unit for bf16, which waits for its operands to be packed.
                                 .cost = [](const OpSite&, const DeviceFacts&) { return 1.0; },
                                 .run =
                                     [](const KernelCall& call) {
                                       HWY_DYNAMIC_DISPATCH(multiply_tall_skinny)
                                       (call);
                                     }};
  return def;
}

}  // namespace tenon
#endif
