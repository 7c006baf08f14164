// attention_visible in AMX's tile registers: scores and sums of tiles of kBf16TileRows queries, both operands
// rounded to bf16, the softmax between them in f32.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_visible_bf16_tiles.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>

#include "backend/cpu/attention_rows-inl.h"
#include "backend/cpu/attention_tiles-inl.h"
#include "backend/cpu/work_queue.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

void load_keys(const AttentionSizes& sizes, const KernelCall& call, int64_t kv_head, Range keys,
               const TileScratch& s) {
  pack_pairs(head_of(call.inputs[1], kv_head, true), keys, {0, sizes.head_dim}, s.keys,
             tile_dim(sizes.head_dim) / 2 * kBf16PanelColumns);
  pack_pairs(head_of(call.inputs[2], kv_head), {0, sizes.v_head_dim}, keys, s.values,
             kTileKeys / 2 * kBf16PanelColumns);
}

// Adds the keys in the scratch to a tile of queries of one head, whose first row in the scratch is `at`.
void add_keys(const VisibleTile& tile, int64_t at, const TileScratch& s) {
  const AttentionSizes& sizes = tile.sizes;
  const int64_t dim = tile_dim(sizes.head_dim), v_dim = tile_dim(sizes.v_head_dim);
  const Range panels = panels_seen(tile, 0);
  if (panels.size() <= 0) return;
  multiply_tiles({s.queries + at * dim, dim}, {s.keys, dim / 2 * kBf16PanelColumns}, panels, dim, false,
                 {s.scores, kTileKeys});
  for (int64_t i = 0; i < tile.rows.size(); ++i) {
    update_row(sizes, tile.keys_of(i), kTileKeys, s.scores + i * kTileKeys,
               {s.sums + (at + i) * v_dim, s.largest[at + i], s.total[at + i]});
  }
  const int64_t first = panels.begin * kBf16PanelColumns, depth = panels.size() * kBf16PanelColumns;
  narrow_rows(s.scores + first, tile.rows.size(), depth, kTileKeys, s.weights + first);
  multiply_tiles({s.weights + first, kTileKeys},
                 {s.values + first / 2 * kBf16PanelColumns, kTileKeys / 2 * kBf16PanelColumns},
                 {0, v_dim / kBf16PanelColumns}, depth, true, {s.sums + at * v_dim, v_dim});
}

void finish_block(const AttentionSizes& sizes, const KernelCall& call, const QueryBlock& block,
                  const TileScratch& s) {
  const TensorView& out = call.outputs[0];
  const int64_t v_dim = tile_dim(sizes.v_head_dim);
  float* lse = output_as<float>(call, 1);
  for (int64_t g = 0; g < block.heads; ++g) {
    for (int64_t i = 0; i < block.rows.size(); ++i) {
      const int64_t at = g * tile_query_block(sizes) + i;
      const int64_t row = (block.rows.begin + i) * sizes.heads + block.head + g;
      float* sums = s.sums + at * v_dim;
      const VF inverse = hn::Set(DF(), 1.0f / s.total[at]);
      for (int64_t j = 0; j < v_dim; j += static_cast<int64_t>(kLanes)) {
        store(hn::Mul(load(sums + j), inverse), sums + j);
      }
      round_row(out.type.dtype, sums, sizes.v_head_dim,
                out.data + *dtype_bytes(out.type.dtype, row * sizes.v_head_dim));
      lse[row] = s.largest[at] + std::log(s.total[at]);
    }
  }
}

void attend_block(const AttentionSizes& sizes, const KernelCall& call, const QueryBlock& block,
                  const TileScratch& s) {
  const int32_t* sequence_begin = input_as<int32_t>(call, 3);
  const int64_t rows_of_head = tile_query_block(sizes), dim = tile_dim(sizes.head_dim);
  for (int64_t g = 0; g < block.heads; ++g) {
    pack_bf16_rows(head_of(call.inputs[0], block.head + g), block.rows, {0, sizes.head_dim},
                   round_up(block.rows.size(), kBf16TileRows), dim, s.queries + g * rows_of_head * dim);
  }
  std::fill_n(s.sums, block.heads * rows_of_head * tile_dim(sizes.v_head_dim), 0.0f);
  std::fill_n(s.largest, block.heads * rows_of_head, kMinusInfinity);
  std::fill_n(s.total, block.heads * rows_of_head, 0.0f);
  // Sequences are contiguous: no query's first key is before that of an earlier one.
  const int64_t first_key = sizes.begin(sequence_begin[block.rows.begin], block.rows.begin);
  for (int64_t key = first_key; key < block.rows.end; key += kTileKeys) {
    const Range keys{key, std::min(key + kTileKeys, block.rows.end)};
    load_keys(sizes, call, block.kv_head, keys, s);
    for (int64_t row = block.rows.begin; row < block.rows.end; row += kBf16TileRows) {
      const Range rows{row, std::min(row + kBf16TileRows, block.rows.end)};
      const VisibleTile tile{sizes, sequence_begin, rows, keys};
      for (int64_t g = 0; g < block.heads; ++g) add_keys(tile, g * rows_of_head + row - block.rows.begin, s);
    }
  }
  finish_block(sizes, call, block, s);
}

void attend_in_tiles(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[0].type.shape, call.inputs[2].type.shape);
  const int64_t rows = tile_query_block(sizes);
  const int64_t scratch_bytes = TileScratch(sizes, nullptr).bytes;
  const int64_t blocks = sizes.block_count(rows);
  WorkQueue queue(blocks);
  call.threads->run([&](int thread) {
    const TileSession session;
    const TileScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
    std::fill_n(scratch.weights, kBf16TileRows * kTileKeys, uint16_t{0});  // rows past the last are read
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

HWY_EXPORT(attend_in_tiles);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const AttentionSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape);
  return TileScratch(sizes, nullptr).bytes * facts.threads;
}

}  // namespace

const KernelDef& attention_visible_bf16_tiles_kernel() {
  static constexpr KernelDef def{
      .op = "attention",
      .name = "attention_visible_bf16_tiles",
      .serves = serves_unit<GemmUnit::bf16_tiles>,
      .workspace_bytes = workspace_bytes,
      .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(GemmUnit::bf16_tiles) - 0.125; },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(attend_in_tiles)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
