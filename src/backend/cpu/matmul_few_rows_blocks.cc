// matmul of up to kMostFewRows rows by a block-quantised weight stored row by output (trans_b): decoding from
// a quantised file. Integers meet the activations as they are; a block's scale and minimum are applied to its
// sum, so that a weight costs one multiply-add and little else. Each row of b is read once, in order.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul_few_rows_blocks.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/convert-inl.h"
#include "backend/cpu/gemm_blocking.h"
#include "backend/cpu/simd-inl.h"
#include "base/checked_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 32;
constexpr int64_t kHalf = 16;
constexpr int64_t kStep = static_cast<int64_t>(kLanes);

// The activations: rows of k floats, and for every block kStep lanes that add up to the sum over the block,
// which minima multiply.
struct Activations {
  int64_t k;
  const float* values;
  const float* sums;

  const float* block(int64_t row, int64_t block) const { return values + row * k + block * kBlock; }
  const float* block_sums(int64_t row, int64_t block) const {
    return sums + (row * (k / kBlock) + block) * kStep;
  }
};

// Each format: bytes of a block, and the multiply-adds of one block with all rows of a. A row's sum is kept
// in lanes.
struct BlockQ8_0 {
  static constexpr int64_t kBytes = 34;
  template <int kRows>
  static HWY_INLINE void add(const uint8_t* block, const Activations& a, int64_t index, VF* sums) {
    const hn::Rebind<int8_t, DF> d8;
    const hn::Rebind<int32_t, DF> d32;
    VF dots[kRows];
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) dots[row] = hn::Zero(DF());
#pragma GCC unroll 4
    for (int64_t i = 0; i < kBlock; i += kStep) {
      const auto* from = reinterpret_cast<const int8_t*>(block + 2 + i);
      const VF q = hn::ConvertTo(DF(), hn::PromoteTo(d32, hn::LoadU(d8, from)));
#pragma GCC unroll 8
      for (int row = 0; row < kRows; ++row) {
        dots[row] = hn::MulAdd(q, load(a.block(row, index) + i), dots[row]);
      }
    }
    const VF scale = widen_scale(block);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) sums[row] = hn::MulAdd(scale, dots[row], sums[row]);
  }
};

// dots[row] += the block's four-bit numbers times a's row; low halves of the bytes first.
template <int kRows>
HWY_INLINE void add_nibbles(const uint8_t* packed, const Activations& a, int64_t index, VF* dots) {
  const hn::Rebind<uint8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  const auto mask = hn::Set(d32, 15);
#pragma GCC unroll 2
  for (int64_t i = 0; i < kHalf; i += kStep) {
    const auto bytes = hn::PromoteTo(d32, hn::LoadU(d8, packed + i));
    const VF low = hn::ConvertTo(DF(), hn::And(bytes, mask));
    const VF high = hn::ConvertTo(DF(), hn::ShiftRight<4>(bytes));
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      const float* x = a.block(row, index) + i;
      dots[row] = hn::MulAdd(low, load(x), dots[row]);
      dots[row] = hn::MulAdd(high, load(x + kHalf), dots[row]);
    }
  }
}

struct BlockQ4_0 {
  static constexpr int64_t kBytes = 18;
  template <int kRows>
  static HWY_INLINE void add(const uint8_t* block, const Activations& a, int64_t index, VF* sums) {
    VF dots[kRows];
    const VF offset = hn::Set(DF(), -8.0f);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) dots[row] = hn::Mul(offset, load(a.block_sums(row, index)));
    add_nibbles<kRows>(block + 2, a, index, dots);
    const VF scale = widen_scale(block);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) sums[row] = hn::MulAdd(scale, dots[row], sums[row]);
  }
};

struct BlockQ4_1 {
  static constexpr int64_t kBytes = 20;
  template <int kRows>
  static HWY_INLINE void add(const uint8_t* block, const Activations& a, int64_t index, VF* sums) {
    VF dots[kRows];
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) dots[row] = hn::Zero(DF());
    add_nibbles<kRows>(block + 4, a, index, dots);
    const VF scale = widen_scale(block), minimum = widen_scale(block + 2);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      const VF below = hn::Mul(minimum, load(a.block_sums(row, index)));
      sums[row] = hn::Add(sums[row], hn::MulAdd(scale, dots[row], below));
    }
  }
};

// out[row] = a's row · the weight's row.
template <typename Block, int kRows>
void multiply_row(const uint8_t* weights, const Activations& a, float* out) {
  VF sums[kRows];
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) sums[row] = hn::Zero(DF());
  const int64_t blocks = a.k / kBlock;
  for (int64_t i = 0; i < blocks; ++i) Block::template add<kRows>(weights + i * Block::kBytes, a, i, sums);
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) out[row] = sum_of(sums[row]);
}

using MultiplyRow = void (*)(const uint8_t* weights, const Activations& a, float* out);

constexpr int64_t kGroupRows = 8;  // rows of a that are multiplied at a time: their sums fit the registers

template <typename Block>
MultiplyRow choose_rows(int64_t m) {
  constexpr MultiplyRow kByRows[] = {multiply_row<Block, 1>, multiply_row<Block, 2>, multiply_row<Block, 3>,
                                     multiply_row<Block, 4>, multiply_row<Block, 5>, multiply_row<Block, 6>,
                                     multiply_row<Block, 7>, multiply_row<Block, 8>};
  static_assert(std::size(kByRows) == kGroupRows);
  return kByRows[m - 1];
}

MultiplyRow choose(DType dtype, int64_t m) {
  if (dtype == DType::q8_0) return choose_rows<BlockQ8_0>(m);
  return dtype == DType::q4_0 ? choose_rows<BlockQ4_0>(m) : choose_rows<BlockQ4_1>(m);
}

// Lane by lane sums of each block.
void sum_blocks(const float* values, int64_t count, float* sums) {
  for (int64_t block = 0; block < count / kBlock; ++block) {
    VF sum = hn::Zero(DF());
    for (int64_t i = 0; i < kBlock; i += kStep) sum = hn::Add(sum, load(values + block * kBlock + i));
    store(sum, sums + block * kStep);
  }
}

void multiply_few_rows_blocks(const KernelCall& kernel) {
  const TensorView &a = kernel.inputs[0], &b = kernel.inputs[1], &out = kernel.outputs[0];
  const int64_t m = out.type.shape[0], n = out.type.shape[1], k = a.type.shape[1];
  float* values = reinterpret_cast<float*>(kernel.workspace.data());
  float* block_sums = values + m * k;
  widen_row(a.type.dtype, a.data, 0, m * k, values);
  sum_blocks(values, m * k, block_sums);
  const float alpha = static_cast<float>(kernel.attrs->real("alpha"));
  const bool has_addend = kernel.inputs.size() == 3;
  const TensorView addend = has_addend ? kernel.inputs[2] : TensorView{};
  const int64_t addend_stride = has_addend && addend.type.shape.rank() == 2 ? n : 0;
  const int64_t out_bytes = *dtype_bytes(out.type.dtype, 1), row_bytes = *dtype_bytes(b.type.dtype, k);
  const MultiplyRow whole = choose(b.type.dtype, std::min(m, kGroupRows));
  const MultiplyRow rest = choose(b.type.dtype, (m - 1) % kGroupRows + 1);
  kernel.threads->parallel_for(n, 16, [&](Range range) {
    float sums[kMostFewRows];
    for (int64_t j = range.begin; j < range.end; ++j) {
      const auto* weights = reinterpret_cast<const uint8_t*>(b.data + j * row_bytes);
      for (int64_t i = 0; i < m; i += kGroupRows) {
        const Activations group{k, values + i * k, block_sums + i * (k / kBlock) * kStep};
        (i + kGroupRows <= m ? whole : rest)(weights, group, sums + i);
      }
      for (int64_t i = 0; i < m; ++i) {
        float value = alpha * sums[i], old = 0;
        if (has_addend) {
          widen_row(addend.type.dtype, addend.data, i * addend_stride + j, 1, &old);
          value += old;
        }
        round_row(out.type.dtype, &value, 1, out.data + (i * n + j) * out_bytes);
      }
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

constexpr int64_t kBlockElements = 32;
constexpr int64_t kMostLanes = 16;  // of any target

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Type &a = site.inputs[0], &b = site.inputs[1], &out = site.outputs[0];
  const bool blocks = b.dtype == DType::q8_0 || b.dtype == DType::q4_0 || b.dtype == DType::q4_1;
  return facts.kind == DeviceKind::cpu && blocks && !site.attrs.flag("trans_a") &&
         site.attrs.flag("trans_b") && out.shape[0] >= 1 && out.shape[0] <= kMostFewRows &&
         is_vector_dtype(a.dtype) && is_vector_dtype(out.dtype) &&
         (site.inputs.size() < 3 || is_vector_dtype(site.inputs[2].dtype));
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts&) {
  const int64_t elements = site.inputs[0].elements();
  return (elements + elements / kBlockElements * kMostLanes) * 4;
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
