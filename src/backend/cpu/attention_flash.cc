// attention by tiles with a running softmax (Dao et al. 2022): tiles of keys outside of a query tile's
// sequences or window are never touched. Threads take blocks of queries in turn, so causal work is even.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_flash.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>

#include "backend/cpu/attention-inl.h"
#include "backend/cpu/attention_sizes.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// out = factor * sums, which may be the same.
template <typename T>
void scale_row(const float* sums, float by, int64_t count, T* out) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  const VF factor = hn::Set(DF(), by);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) store(hn::Mul(load(sums + i), factor), out + i);
  if (i == count) return;
  const size_t rest = static_cast<size_t>(count - i);
  store_part(hn::Mul(load_part(sums + i, rest), factor), out + i, rest);
}

// Row `row` of the scores, keys [low, high) of the tile visible, becomes exp(score - largest); the sums of
// earlier tiles are rescaled.
void update_row(const AttentionSizes& sizes, float* scores, int64_t low, int64_t high, float* sums,
                float& largest, float& total) {
  const DF d;
  if (low >= high) {
    std::fill(scores, scores + kColumnTile, 0.0f);
    return;
  }
  if (sizes.softcap > 0) {
    const VF cap = hn::Set(d, sizes.softcap), inverse = hn::Set(d, 1.0f / sizes.softcap);
    each_column(scores, [&](VF v, int64_t) HWY_ATTR { return soft_cap(v, cap, inverse); });
  }
  std::fill(scores, scores + low, kMinusInfinity);
  std::fill(scores + high, scores + kColumnTile, kMinusInfinity);
  VF most = hn::Set(d, largest);
  for (int64_t j = 0; j < kColumnTile; j += static_cast<int64_t>(kLanes))
    most = hn::Max(most, load(scores + j));
  const float now = max_of(most);
  const VF shift = hn::Set(d, now);
  VF sum = hn::Zero(d);
  each_column(scores, [&](VF v, int64_t) HWY_ATTR {
    const VF p = exp_of(hn::Sub(v, shift));
    sum = hn::Add(sum, p);
    return p;
  });
  if (now != largest) {
    const float factor = std::exp(largest - now);
    total *= factor;
    scale_row(sums, factor, sizes.v_head_dim, sums);
  }
  total += sum_of(sum);
  largest = now;
}

void finish_block(const AttentionSizes& sizes, const KernelCall& call, const QueryBlock& block,
                  const AttentionScratch& s) {
  const TensorView& out = call.outputs[0];
  float* lse = output_as<float>(call, 1);
  for (int64_t g = 0; g < block.heads; ++g) {
    for (int64_t i = 0; i < block.rows.size(); ++i) {
      const int64_t at = g * sizes.query_block() + i;
      const int64_t row = (block.rows.begin + i) * sizes.heads + block.head + g;
      const float* sums = s.sums + at * sizes.v_head_dim;
      const float inverse = 1.0f / s.total[at];
      if (out.type.dtype == DType::bf16) {
        scale_row(sums, inverse, sizes.v_head_dim,
                  reinterpret_cast<bf16*>(out.data) + row * sizes.v_head_dim);
      } else {
        scale_row(sums, inverse, sizes.v_head_dim,
                  reinterpret_cast<float*>(out.data) + row * sizes.v_head_dim);
      }
      lse[row] = s.largest[at] + std::log(s.total[at]);
    }
  }
}

// Adds a tile of keys, packed in the scratch, to a tile of queries of one head; `at` is the tile's first row
// in the scratch.
template <typename Products>
void add_keys(const AttentionSizes& sizes, const int32_t* sequence_begin, Range rows, Range keys, int64_t at,
              const AttentionScratch& s) {
  const F32Tile scores{s.scores, kColumnTile};
  const F32Tile sums{s.sums + at * sizes.v_head_dim, sizes.v_head_dim};
  Products::multiply_rows(Products::row_at(s.queries, at, sizes.head_dim), s.keys, rows.size(), keys.size(),
                          sizes.head_dim, sizes.scale, scores);
  for (int64_t i = 0; i < rows.size(); ++i) {
    const int64_t t = rows.begin + i;
    const int64_t low = std::max<int64_t>(sizes.begin(sequence_begin[t], t) - keys.begin, 0);
    update_row(sizes, s.scores + i * kColumnTile, low, std::min(t + 1, keys.end) - keys.begin,
               sums.data + i * sums.stride, s.largest[at + i], s.total[at + i]);
  }
  Products::add_product(scores, s.values, rows.size(), sizes.v_head_dim, keys.size(), sums);
}

template <typename Products>
void attend_block(const AttentionSizes& sizes, const KernelCall& call, const QueryBlock& block,
                  const AttentionScratch& s) {
  const int32_t* sequence_begin = input_as<int32_t>(call, 3);
  const int64_t stride = sizes.query_block();
  const auto first_key = [&](int64_t t) { return sizes.begin(sequence_begin[t], t); };
  for (int64_t g = 0; g < block.heads; ++g) {
    Products::pack_rows(head_of(call.inputs[0], block.head + g), block.rows, sizes.head_dim,
                        Products::row_at(s.queries, g * stride, sizes.head_dim));
  }
  std::fill_n(s.sums, block.heads * stride * sizes.v_head_dim, 0.0f);
  std::fill_n(s.largest, block.heads * stride, kMinusInfinity);
  std::fill_n(s.total, block.heads * stride, 0.0f);
  // Sequences are contiguous: no query's first key is before that of an earlier one.
  for (int64_t key = first_key(block.rows.begin); key < block.rows.end; key += kColumnTile) {
    const Range keys{key, std::min(key + kColumnTile, block.rows.end)};
    Products::pack_columns(head_of(call.inputs[1], block.kv_head, true), keys, {0, sizes.head_dim}, s.keys);
    Products::pack_columns(head_of(call.inputs[2], block.kv_head), {0, sizes.v_head_dim}, keys, s.values);
    for (int64_t begin = block.rows.begin; begin < block.rows.end; begin += kRowTile) {
      const Range rows{begin, std::min(begin + kRowTile, block.rows.end)};
      if (key >= rows.end || first_key(begin) >= keys.end) continue;
      for (int64_t g = 0; g < block.heads; ++g) {
        add_keys<Products>(sizes, sequence_begin, rows, keys, g * stride + begin - block.rows.begin, s);
      }
    }
  }
  finish_block(sizes, call, block, s);
}

template <typename Products>
void attend(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[0].type.shape, call.inputs[2].type.shape);
  const int64_t rows = sizes.query_block(), blocks = sizes.block_count(rows);
  const int64_t scratch_bytes = AttentionScratch(sizes, nullptr).bytes;
  call.threads->run([&](int thread) {
    const AttentionScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
    for (int64_t i = thread; i < blocks; i += call.threads->size())
      attend_block<Products>(sizes, call, sizes.block(rows, i), scratch);
  });
}

void attend_f32(const KernelCall& call) {
  attend<F32Products>(call);
}
void attend_bf16_pairs(const KernelCall& call) {
  attend<Bf16PairProducts>(call);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(attend_f32);
HWY_EXPORT(attend_bf16_pairs);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const AttentionSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape);
  return AttentionScratch(sizes, nullptr).bytes * facts.threads;
}

}  // namespace

const KernelDef& attention_flash_kernel() {
  static constexpr KernelDef def{
      .op = "attention",
      .name = "attention_flash",
      .serves = serves_vector_dtypes,
      .workspace_bytes = workspace_bytes,
      .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(GemmUnit::f32); },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(attend_f32)
            (call);
          }};
  return def;
}

const KernelDef& attention_flash_bf16_pairs_kernel() {
  static constexpr KernelDef def{
      .op = "attention",
      .name = "attention_flash_bf16_pairs",
      .serves = serves_unit<GemmUnit::bf16_pairs>,
      .workspace_bytes = workspace_bytes,
      .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(GemmUnit::bf16_pairs); },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(attend_bf16_pairs)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
