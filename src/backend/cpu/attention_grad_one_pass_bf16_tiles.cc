// attention_grad_one_pass in AMX's tile registers, operands rounded to bf16. Gradients of keys and values are
// summed turned, [dimensions, keys], so that probabilities and gradients of scores are the right operand of
// those products as they come: pairs of queries side by side.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_grad_one_pass_bf16_tiles.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/attention_one_pass-inl.h"
#include "backend/cpu/attention_rows-inl.h"
#include "backend/cpu/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kPanelPairs = kGradTile / 2 * kBf16PanelColumns;  // words of a panel over a tile of tokens

// The chunk's keys and values of one kv head to the scratch, and no gradients of them.
void load_keys(const OnePass& pass, Range chunk, int64_t kv_head, const GradTileScratch& s) {
  const int64_t dim = pass.sizes.head_dim, v_dim = pass.sizes.v_head_dim;
  const GemmMatrix keys = head_of(pass.call.inputs[kK], kv_head);
  pack_pairs(head_of(pass.call.inputs[kK], kv_head, true), chunk, {0, dim}, s.key_panels,
             tile_dim(dim) / 2 * kBf16PanelColumns);
  pack_pairs(head_of(pass.call.inputs[kV], kv_head, true), chunk, {0, v_dim}, s.value_panels,
             tile_dim(v_dim) / 2 * kBf16PanelColumns);
  for (int64_t key = chunk.begin; key < chunk.end; key += kGradTile) {
    pack_pairs(keys, {0, dim}, {key, std::min(key + kGradTile, chunk.end)},
               s.keys + (key - chunk.begin) * tile_dim(dim) / 2, kPanelPairs);
  }
  std::fill_n(s.dk, kGradChunk * tile_dim(dim), 0.0f);
  std::fill_n(s.dv, kGradChunk * tile_dim(v_dim), 0.0f);
}

// Rows of one head, as they lie and turned: [dimensions, kGradTile rows].
void load_rows(const GemmMatrix& head, Range rows, int64_t dim, uint32_t* pairs, uint16_t* out,
               uint16_t* turned) {
  pack_bf16_rows(head, rows, {0, dim}, kGradTile, tile_dim(dim), out);
  pack_pairs(head, {0, dim}, rows, pairs, kPanelPairs);
  const float* pointers[kGradTile / 2];  // pairs are copied as words
  for (int64_t d = 0; d < dim; d += kBf16PanelColumns, pairs += kPanelPairs) {
    for (int64_t i = 0; i < kGradTile / 2; ++i) {
      pointers[i] = reinterpret_cast<const float*>(pairs + i * kBf16PanelColumns);
    }
    transpose_rows(pointers, kGradTile / 2, kGradTile / 2, kBf16PanelColumns,
                   reinterpret_cast<float*>(turned + d * kGradTile), kGradTile / 2);
  }
}

// A tile of queries of one head to the scratch.
void load_queries(const OnePass& pass, Range rows, int64_t head, const GradTileScratch& s) {
  const int64_t dim = pass.sizes.head_dim, v_dim = pass.sizes.v_head_dim;
  const float* lse = input_as<float>(pass.call, kLse);
  const GemmMatrix out = head_of(pass.call.inputs[kOut], head), dout = head_of(pass.call.inputs[kDout], head);
  load_rows(head_of(pass.call.inputs[kQ], head), rows, dim, s.pairs, s.q, s.turned_q);
  load_rows(dout, rows, v_dim, s.pairs, s.dout, s.turned_dout);
  for (int64_t i = 0; i < rows.size(); ++i) {
    s.lse[i] = lse[(rows.begin + i) * pass.sizes.heads + head];
    widen_row(out.dtype, matrix_row(out, rows.begin + i), 0, v_dim, s.wide[0]);
    widen_row(dout.dtype, matrix_row(dout, rows.begin + i), 0, v_dim, s.wide[1]);
    s.delta[i] = dot(s.wide[0], s.wide[1], v_dim);
  }
  std::fill_n(s.dq, kGradTile * tile_dim(dim), 0.0f);
}

// Panels of keys of `from` [kGradTile queries, kGradTile keys], rounded to bf16 in pairs of queries.
void pair_rows(const float* from, uint32_t* out) {
  const hn::RebindToUnsigned<DF> du;
  for (int64_t i = 0; i < kGradTile; i += 2, from += 2 * kGradTile, out += kBf16PanelColumns) {
    for (int64_t j = 0; j < kGradTile; j += static_cast<int64_t>(kLanes)) {
      const auto low = hn::BitCast(du, round_to_bf16(load(from + j)));
      const auto high = hn::BitCast(du, round_to_bf16(load(from + kGradTile + j)));
      hn::StoreU(hn::Or(hn::ShiftRight<16>(low), high), du,
                 out + j / kBf16PanelColumns * kPanelPairs + j % kBf16PanelColumns);
    }
  }
}

// Scores and their gradients of the rows of a tile from row `first` on; what is not seen is zero.
void grade_rows(const OnePass& pass, const VisibleTile& tile, int64_t at, int64_t first, Range panels,
                const GradTileScratch& s) {
  const AttentionSizes& sizes = pass.sizes;
  const int64_t dim = tile_dim(sizes.head_dim), v_dim = tile_dim(sizes.v_head_dim);
  float *p = s.p + first * kGradTile, *ds = s.ds + first * kGradTile;
  multiply_tiles({s.q + first * dim, dim}, {s.key_panels + at * dim / 2, dim / 2 * kBf16PanelColumns}, panels,
                 dim, false, {p, kGradTile});
  multiply_tiles({s.dout + first * v_dim, v_dim},
                 {s.value_panels + at * v_dim / 2, v_dim / 2 * kBf16PanelColumns}, panels, v_dim, false,
                 {ds, kGradTile});
  for (int64_t i = 0; i < kBf16TileRows; ++i) {
    const int64_t row = first + i;
    const Range seen = row < tile.rows.size() ? tile.keys_of(row) : Range{0, 0};
    gradient_row(sizes, seen, kGradTile, s.lse[row], s.delta[row], p + i * kGradTile, ds + i * kGradTile);
  }
}

// Adds the pairs of a tile, whose first key is the chunk's key `at`, to the gradients in the scratch.
void add_tile(const OnePass& pass, const VisibleTile& tile, int64_t at, const GradTileScratch& s) {
  const int64_t dim = tile_dim(pass.sizes.head_dim), v_dim = tile_dim(pass.sizes.v_head_dim);
  const int64_t rows = round_up(tile.rows.size(), kBf16TileRows);
  Range all{kGradTile, 0};  // panels that any row sees
  Range seen[kGradTile / kBf16TileRows];
  for (int64_t first = 0; first < rows; first += kBf16TileRows) {
    Range& panels = seen[first / kBf16TileRows] = panels_seen(tile, first);
    grade_rows(pass, tile, at, first, panels, s);
    if (panels.size() <= 0) continue;
    all = {std::min(all.begin, panels.begin), std::max(all.end, panels.end)};
  }
  if (all.size() <= 0) return;
  narrow_rows(s.ds, rows, kGradTile, kGradTile, s.narrow_ds);
  pair_rows(s.p, s.p_pairs);
  pair_rows(s.ds, s.ds_pairs);
  for (int64_t first = 0; first < rows; first += kBf16TileRows) {
    const Range panels = seen[first / kBf16TileRows];
    const int64_t key = panels.begin * kBf16PanelColumns, depth = panels.size() * kBf16PanelColumns;
    if (depth <= 0) continue;
    multiply_tiles({s.narrow_ds + first * kGradTile + key, kGradTile},
                   {s.keys + at * dim / 2 + key / 2 * kBf16PanelColumns, kPanelPairs},
                   {0, dim / kBf16PanelColumns}, depth, true, {s.dq + first * dim, dim});
  }
  for (int64_t d = 0; d < dim; d += kBf16TileRows) {
    multiply_tiles({s.turned_q + d * kGradTile, kGradTile}, {s.ds_pairs, kPanelPairs}, all, rows, true,
                   {s.dk + d * kGradChunk + at, kGradChunk});
  }
  for (int64_t d = 0; d < v_dim; d += kBf16TileRows) {
    multiply_tiles({s.turned_dout + d * kGradTile, kGradTile}, {s.p_pairs, kPanelPairs}, all, rows, true,
                   {s.dv + d * kGradChunk + at, kGradChunk});
  }
}

void add_rows(const float* from, int64_t stride, Range tokens, int64_t head, const GradientSums& to) {
  for (int64_t t = tokens.begin; t < tokens.end; ++t, from += stride) {
    float* sums = to.at(t, head);
    for (int64_t j = 0; j < to.dim; ++j) sums[j] += from[j];
  }
}

// The same of sums that lie turned, [dimensions, kGradChunk].
void add_turned(const float* from, Range tokens, int64_t head, const GradientSums& to) {
  for (int64_t d = 0; d < to.dim; ++d, from += kGradChunk) {
    for (int64_t i = 0; i < tokens.size(); ++i) to.at(tokens.begin + i, head)[d] += from[i];
  }
}

// A chunk of keys of one kv head against a chunk of queries of its heads.
void add_chunk(const OnePass& pass, Range keys, Range queries, int64_t kv_head, const GradTileScratch& s) {
  const int64_t group = pass.sizes.group();
  if (pass.begin(queries.begin) >= keys.end) return;
  load_keys(pass, keys, kv_head, s);
  for (int64_t row = queries.begin; row < queries.end; row += kGradTile) {
    const Range rows{row, std::min(row + kGradTile, queries.end)};
    if (pass.begin(rows.begin) >= keys.end) break;  // so are all later ones
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      load_queries(pass, rows, head, s);
      for (int64_t key = keys.begin; key < keys.end; key += kGradTile) {
        const VisibleTile tile{
            pass.sizes, pass.sequence_begin, rows, {key, std::min(key + kGradTile, keys.end)}};
        if (!tile.empty()) add_tile(pass, tile, key - keys.begin, s);
      }
      add_rows(s.dq, tile_dim(pass.sizes.head_dim), rows, head, pass.sums[0]);
    }
  }
  add_turned(s.dk, keys, kv_head, pass.sums[1]);
  add_turned(s.dv, keys, kv_head, pass.sums[2]);
}

void attend_backward_in_tiles(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[kQ].type.shape, call.inputs[kV].type.shape);
  const int64_t scratch_bytes = GradTileScratch(sizes, nullptr).bytes;
  const OnePass pass = one_pass(call, sizes, kGradChunk, scratch_bytes);
  each_step(pass, [&](int thread, Range keys, Range queries, int64_t kv_head) {
    const TileSession session;
    const GradTileScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
    add_chunk(pass, keys, queries, kv_head, scratch);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(attend_backward_in_tiles);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const AttentionSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape);
  return one_pass_bytes(site, GradTileScratch(sizes, nullptr).bytes, facts.threads);
}

}  // namespace

const KernelDef& attention_grad_one_pass_bf16_tiles_kernel() {
  static constexpr KernelDef def{
      .op = "attention_grad",
      .name = "attention_grad_one_pass_bf16_tiles",
      .serves = serves_unit<GemmUnit::bf16_tiles>,
      .workspace_bytes = workspace_bytes,
      .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(GemmUnit::bf16_tiles) - 0.125; },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(attend_backward_in_tiles)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
