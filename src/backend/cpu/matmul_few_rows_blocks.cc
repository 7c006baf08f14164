// matmul of up to kMostFewRows rows by a block-quantised weight stored row by output (trans_b): decoding from
// a quantised file. Integers meet the activations as they are; a block's scale and minimum are applied to its
// sum, so that a weight costs one multiply-add and little else. Each row of b is read once, in order. An
// output is the same whatever other rows there are.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul_few_rows_blocks.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/few_rows-inl.h"
#include "backend/cpu/few_rows_nibbles-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/checked_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// out[row * kColumnBlock] = a's row · the weight's row.
template <int kRows>
void multiply_q8_0(const uint8_t* weights, const BlockActivations& a, float* out) {
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  constexpr int64_t kBytes = 34;
  VF sums[kRows];
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) sums[row] = hn::Zero(DF());
  for (int64_t block = 0; block < a.blocks; ++block, weights += kBytes) {
    prefetch_ahead<kBytes>(weights);
    VF dots[kRows];
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) dots[row] = hn::Zero(DF());
#pragma GCC unroll 4
    for (int64_t i = 0; i < kBlock; i += kStep) {
      const auto* from = reinterpret_cast<const int8_t*>(weights + 2 + i);
      const VF q = hn::ConvertTo(DF(), hn::PromoteTo(d32, hn::LoadU(d8, from)));
#pragma GCC unroll 8
      for (int row = 0; row < kRows; ++row) {
        dots[row] = hn::MulAdd(q, load(a.row(row) + block * kBlock + i), dots[row]);
      }
    }
    const VF scale = widen_scale(weights);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) sums[row] = hn::MulAdd(scale, dots[row], sums[row]);
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) out[row * kColumnBlock] = sum_of(sums[row]);
}

using MultiplyRows = void (*)(const uint8_t* weights, const BlockActivations& a, float* out);

constexpr int64_t kGroupRows = 8;  // rows of a that are multiplied at a time: their sums fit the registers
constexpr int64_t kGroupFloats = 6144;  // of a that are multiplied at a time: they fit the first cache

template <int kRows>
MultiplyRows choose_format(DType dtype) {
  if (dtype == DType::q8_0) return multiply_q8_0<kRows>;
  if (dtype == DType::q4_0) return multiply_nibbles<FormatQ4_0, kRows, 1>;
  return multiply_nibbles<FormatQ4_1, kRows, 1>;
}

// What multiplies m rows of a by one of b.
MultiplyRows choose(DType dtype, int64_t m) {
  static constexpr MultiplyRows (*kByRows[])(DType) = {choose_format<1>, choose_format<2>, choose_format<3>,
                                                       choose_format<4>, choose_format<5>, choose_format<6>,
                                                       choose_format<7>, choose_format<8>};
  static_assert(std::size(kByRows) == kGroupRows);
  return kByRows[m - 1](dtype);
}

// What multiplies one row of a by two of b; nothing for q8_0, whose bytes arrive no faster than one
// multiplies them.
MultiplyRows choose_two_columns(DType dtype) {
  if (dtype == DType::q8_0) return nullptr;
  return dtype == DType::q4_0 ? multiply_nibbles<FormatQ4_0, 1, 2> : multiply_nibbles<FormatQ4_1, 1, 2>;
}

void prepare(DType dtype, const float* values, BlockActivations& a, int64_t row) {
  float* to = a.values + row * a.value_stride;
  float* offsets = a.offsets + row * a.offset_stride;
  if (dtype == DType::q8_0) {
    std::copy_n(values, a.blocks * kBlock, to);
  } else if (dtype == DType::q4_0) {
    prepare_nibbles<FormatQ4_0>(values, a.blocks, to, offsets);
  } else {
    prepare_nibbles<FormatQ4_1>(values, a.blocks, to, offsets);
  }
}

void multiply_few_rows_blocks(const KernelCall& kernel) {
  const TensorView &a = kernel.inputs[0], &b = kernel.inputs[1];
  const DType dtype = b.type.dtype;
  const int64_t m = a.type.shape[0], k = a.type.shape[1];
  float* widened = reinterpret_cast<float*>(kernel.workspace.data());
  BlockActivations prepared = BlockActivations::in(widened + k, m, k / kBlock);
  for (int64_t row = 0; row < m; ++row) {
    widen_row(a.type.dtype, a.data, row * k, k, widened);
    prepare(dtype, widened, prepared, row);
  }
  const int64_t row_bytes = *dtype_bytes(dtype, k);
  const int64_t group = std::clamp<int64_t>(kGroupFloats / std::max<int64_t>(k, 1), 2, kGroupRows);
  const MultiplyRows two_columns = m == 1 ? choose_two_columns(dtype) : nullptr;
  each_column_block(kernel, [&](int64_t first, int64_t count, ColumnSums& sums) {
    for (int64_t row = 0; row < m; row += group) {
      const MultiplyRows multiply = choose(dtype, std::min(group, m - row));
      const BlockActivations rows = prepared.from_row(row);
      const auto weights = [&](int64_t c) {
        return reinterpret_cast<const uint8_t*>(b.data + (first + c) * row_bytes);
      };
      int64_t c = 0;
      if (two_columns != nullptr) {
        for (; c + 2 <= count; c += 2) two_columns(weights(c), rows, &sums[row][c]);
      }
      for (; c < count; ++c) multiply(weights(c), rows, &sums[row][c]);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(multiply_few_rows_blocks);

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Type &a = site.inputs[0], &b = site.inputs[1], &out = site.outputs[0];
  const bool blocks = b.dtype == DType::q8_0 || b.dtype == DType::q4_0 || b.dtype == DType::q4_1;
  return facts.kind == DeviceKind::cpu && blocks && !site.attrs.flag("trans_a") &&
         site.attrs.flag("trans_b") && out.shape[0] >= 1 && out.shape[0] <= kMostFewRows &&
         is_vector_dtype(a.dtype) && is_vector_dtype(out.dtype) &&
         (site.inputs.size() < 3 || is_vector_dtype(site.inputs[2].dtype));
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts&) {
  const Shape& a = site.inputs[0].shape;
  return block_activations_bytes(a[0], a[1]);
}

}  // namespace

const KernelDef& matmul_few_rows_blocks_kernel() {
  static constexpr KernelDef def{.op = "matmul",
                                 .name = "matmul_few_rows_blocks",
                                 .serves = serves,
                                 .workspace_bytes = workspace_bytes,
                                 .cost = [](const OpSite&, const DeviceFacts&) { return 0.5; },
                                 .run =
                                     [](const KernelCall& call) {
                                       HWY_DYNAMIC_DISPATCH(multiply_few_rows_blocks)
                                       (call);
                                     }};
  return def;
}

}  // namespace tenon
#endif
