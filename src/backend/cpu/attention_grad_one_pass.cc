// attention_grad that computes scores once for all three gradients, tile by tile of what is visible.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_grad_one_pass.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/attention_one_pass-inl.h"
#include "backend/cpu/attention_rows-inl.h"
#include "backend/cpu/attention_visible-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// The chunk's keys and values of one kv head to the scratch.
void load_keys(const OnePass& pass, Range chunk, int64_t kv_head, const OnePassScratch& s) {
  const int64_t dim = pass.sizes.head_dim, v_dim = pass.sizes.v_head_dim;
  pack_b(head_of(pass.call.inputs[kK], kv_head, true), chunk, {0, dim}, false, s.key_panels, dim * kPanel);
  pack_b(head_of(pass.call.inputs[kV], kv_head, true), chunk, {0, v_dim}, false, s.value_panels,
         v_dim * kPanel);
  copy_head(pass.call.inputs[kK], kv_head, chunk, copied_stride(dim), s.keys);
}

// A tile of queries of one head to the scratch.
void load_queries(const OnePass& pass, Range rows, int64_t head, const OnePassScratch& s) {
  const int64_t v_dim = pass.sizes.v_head_dim, v_stride = copied_stride(v_dim);
  const float* lse = input_as<float>(pass.call, kLse);
  copy_head(pass.call.inputs[kQ], head, rows, copied_stride(pass.sizes.head_dim), s.q);
  copy_head(pass.call.inputs[kDout], head, rows, v_stride, s.dout);
  copy_head(pass.call.inputs[kOut], head, rows, v_stride, s.out);
  for (int64_t i = 0; i < rows.size(); ++i) {
    s.lse[i] = lse[(rows.begin + i) * pass.sizes.heads + head];
    s.delta[i] = dot(s.out + i * v_stride, s.dout + i * v_stride, v_dim);
  }
}

// Adds the pairs of a tile, whose first key is the chunk's key `at`, to the gradients.
void add_tile(const OnePass& pass, const VisibleTile& tile, int64_t at, int64_t head,
              const OnePassScratch& s) {
  const AttentionSizes& sizes = pass.sizes;
  const int64_t dim = sizes.head_dim, v_dim = sizes.v_head_dim, kv_head = head / sizes.group();
  const int64_t stride = copied_stride(dim), v_stride = copied_stride(v_dim);
  multiply_visible(tile, s.q, stride, s.key_panels + at * dim, dim, s.p);
  multiply_visible(tile, s.dout, v_stride, s.value_panels + at * v_dim, v_dim, s.ds);
  for (int64_t i = 0; i < tile.rows.size(); ++i) {
    gradient_row(sizes, tile.keys_of(i), kVisibleKeys, s.lse[i], s.delta[i], s.p + i * kVisibleKeys,
                 s.ds + i * kVisibleKeys);
  }
  const auto sums_of = [&](int index, int64_t token, int64_t of_head) {
    return F32Tile{pass.sums[index].at(token, of_head), pass.sums[index].stride()};
  };
  add_visible_keys(tile, s.ds, s.keys + at * stride, stride, dim, sums_of(0, tile.rows.begin, head));
  add_visible_rows(tile, s.ds, s.q, stride, dim, sums_of(1, tile.keys.begin, kv_head));
  add_visible_rows(tile, s.p, s.dout, v_stride, v_dim, sums_of(2, tile.keys.begin, kv_head));
}

// A chunk of keys of one kv head against a chunk of queries of its heads.
void add_chunk(const OnePass& pass, Range keys, Range queries, int64_t kv_head, const OnePassScratch& s) {
  const int64_t group = pass.sizes.group();
  if (pass.begin(queries.begin) >= keys.end) return;
  load_keys(pass, keys, kv_head, s);
  for (int64_t row = queries.begin; row < queries.end; row += kVisibleRows) {
    const Range rows{row, std::min(row + kVisibleRows, queries.end)};
    if (pass.begin(rows.begin) >= keys.end) return;  // so are all later ones
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      load_queries(pass, rows, head, s);
      for (int64_t key = keys.begin; key < keys.end; key += kVisibleKeys) {
        const VisibleTile tile{
            pass.sizes, pass.sequence_begin, rows, {key, std::min(key + kVisibleKeys, keys.end)}};
        if (!tile.empty()) add_tile(pass, tile, key - keys.begin, head, s);
      }
    }
  }
}

void attend_backward_once(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[kQ].type.shape, call.inputs[kV].type.shape);
  const int64_t scratch_bytes = OnePassScratch(sizes, nullptr).bytes;
  const OnePass pass = one_pass(call, sizes, kVisibleChunk, scratch_bytes);
  each_step(pass, [&](int thread, Range keys, Range queries, int64_t kv_head) {
    const OnePassScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
    add_chunk(pass, keys, queries, kv_head, scratch);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(attend_backward_once);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const AttentionSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape);
  return one_pass_bytes(site, OnePassScratch(sizes, nullptr).bytes, facts.threads);
}

}  // namespace

const KernelDef& attention_grad_one_pass_kernel() {
  static constexpr KernelDef def{
      .op = "attention_grad",
      .name = "attention_grad_one_pass",
      .serves = serves_vector_dtypes,
      .workspace_bytes = workspace_bytes,
      .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(GemmUnit::f32) - 0.125; },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(attend_backward_once)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
