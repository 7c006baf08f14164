// attention by tiles with a running softmax, as attention_flash, of which only what the mask leaves visible
// is multiplied. Threads take blocks of queries as they come free, the last and longest first; a block's bits
// do not depend on who computes it.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_visible.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>

#include "backend/cpu/attention_rows-inl.h"
#include "backend/cpu/attention_visible-inl.h"
#include "backend/cpu/work_queue.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

void finish_block(const AttentionSizes& sizes, const KernelCall& call, const QueryBlock& block,
                  const VisibleScratch& s) {
  const TensorView& out = call.outputs[0];
  const int64_t stride = copied_stride(sizes.v_head_dim);
  float* lse = output_as<float>(call, 1);
  for (int64_t g = 0; g < block.heads; ++g) {
    for (int64_t i = 0; i < block.rows.size(); ++i) {
      const int64_t at = g * sizes.query_block() + i;
      const int64_t row = (block.rows.begin + i) * sizes.heads + block.head + g;
      float* sums = s.sums + at * stride;
      const VF inverse = hn::Set(DF(), 1.0f / s.total[at]);
      for (int64_t j = 0; j < sizes.v_head_dim; j += static_cast<int64_t>(kLanes)) {
        store(hn::Mul(load(sums + j), inverse), sums + j);
      }
      round_row(out.type.dtype, sums, sizes.v_head_dim,
                out.data + *dtype_bytes(out.type.dtype, row * sizes.v_head_dim));
      lse[row] = s.largest[at] + std::log(s.total[at]);
    }
  }
}

// Adds a tile of keys, packed in the scratch, to a tile of queries of one head, whose first row in the
// scratch is `at`.
void add_keys(const VisibleTile& tile, int64_t at, const VisibleScratch& s) {
  const AttentionSizes& sizes = tile.sizes;
  const int64_t stride = copied_stride(sizes.head_dim), v_stride = copied_stride(sizes.v_head_dim);
  multiply_visible(tile, s.queries + at * stride, stride, s.keys, sizes.head_dim, s.scores);
  for (int64_t i = 0; i < tile.rows.size(); ++i) {
    update_row(sizes, tile.keys_of(i), kVisibleKeys, s.scores + i * kVisibleKeys,
               {s.sums + (at + i) * v_stride, s.largest[at + i], s.total[at + i]});
  }
  add_visible_keys(tile, s.scores, s.values, v_stride, sizes.v_head_dim, {s.sums + at * v_stride, v_stride});
}

void attend_block(const AttentionSizes& sizes, const KernelCall& call, const QueryBlock& block,
                  const VisibleScratch& s) {
  const int32_t* sequence_begin = input_as<int32_t>(call, 3);
  const int64_t rows_of_head = sizes.query_block(), v_stride = copied_stride(sizes.v_head_dim);
  for (int64_t g = 0; g < block.heads; ++g) {
    const int64_t stride = copied_stride(sizes.head_dim);
    copy_head(call.inputs[0], block.head + g, block.rows, stride, s.queries + g * rows_of_head * stride);
  }
  std::fill_n(s.sums, block.heads * rows_of_head * v_stride, 0.0f);
  std::fill_n(s.largest, block.heads * rows_of_head, kMinusInfinity);
  std::fill_n(s.total, block.heads * rows_of_head, 0.0f);
  // Sequences are contiguous: no query's first key is before that of an earlier one.
  const int64_t first_key = sizes.begin(sequence_begin[block.rows.begin], block.rows.begin);
  for (int64_t key = first_key; key < block.rows.end; key += kVisibleKeys) {
    const Range keys{key, std::min(key + kVisibleKeys, block.rows.end)};
    pack_b(head_of(call.inputs[1], block.kv_head, true), keys, {0, sizes.head_dim}, false, s.keys,
           sizes.head_dim * kPanel);
    copy_head(call.inputs[2], block.kv_head, keys, v_stride, s.values);
    for (int64_t row = block.rows.begin; row < block.rows.end; row += kVisibleRows) {
      const Range rows{row, std::min(row + kVisibleRows, block.rows.end)};
      const VisibleTile tile{sizes, sequence_begin, rows, keys};
      if (tile.empty()) continue;
      for (int64_t g = 0; g < block.heads; ++g) add_keys(tile, g * rows_of_head + row - block.rows.begin, s);
    }
  }
  finish_block(sizes, call, block, s);
}

void attend_visible(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[0].type.shape, call.inputs[2].type.shape);
  const int64_t rows = sizes.query_block();
  const int64_t scratch_bytes = VisibleScratch(sizes, nullptr).bytes;
  const int64_t blocks = sizes.block_count(rows);
  WorkQueue queue(blocks);
  call.threads->run([&](int thread) {
    const VisibleScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
    for (int64_t taken; (taken = queue.take()) < blocks;) {
      attend_block(sizes, call, sizes.block(rows, blocks - 1 - taken), scratch);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(attend_visible);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const AttentionSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape);
  return VisibleScratch(sizes, nullptr).bytes * facts.threads;
}

}  // namespace

const KernelDef& attention_visible_kernel() {
  static constexpr KernelDef def{
      .op = "attention",
      .name = "attention_visible",
      .serves = serves_vector_dtypes,
      .workspace_bytes = workspace_bytes,
      .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(GemmUnit::f32) - 0.125; },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(attend_visible)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
