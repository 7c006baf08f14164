// attention by tiles with a running softmax (Dao et al. 2022): tiles of keys outside of a query tile's
// sequences or window are never touched. Threads take query tiles in turn, so causal work is even.
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
    for (int64_t i = 0; i < sizes.v_head_dim; ++i) sums[i] *= factor;
  }
  total += sum_of(sum);
  largest = now;
}

template <typename T>
void write_row(const float* sums, float inverse, int64_t count, T* out) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  const VF factor = hn::Set(DF(), inverse);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) store(hn::Mul(load(sums + i), factor), out + i);
  if (i == count) return;
  const size_t rest = static_cast<size_t>(count - i);
  store_part(hn::Mul(load_part(sums + i, rest), factor), out + i, rest);
}

// One tile of tokens [rows.begin, rows.end) for heads [head, head + heads) of one kv head.
struct QueryTile {
  Range rows;
  int64_t kv_head, head, heads;
};

void finish_tile(const AttentionSizes& sizes, const KernelCall& call, const QueryTile& tile,
                 const AttentionScratch& s) {
  const TensorView& out = call.outputs[0];
  float* lse = output_as<float>(call, 1);
  for (int64_t g = 0; g < tile.heads; ++g) {
    for (int64_t i = 0; i < tile.rows.size(); ++i) {
      const int64_t at = g * kRowTile + i;
      const int64_t row = (tile.rows.begin + i) * sizes.heads + tile.head + g;
      const float* sums = s.sums + at * sizes.v_head_dim;
      const float inverse = 1.0f / s.total[at];
      if (out.type.dtype == DType::bf16) {
        write_row(sums, inverse, sizes.v_head_dim,
                  reinterpret_cast<bf16*>(out.data) + row * sizes.v_head_dim);
      } else {
        write_row(sums, inverse, sizes.v_head_dim,
                  reinterpret_cast<float*>(out.data) + row * sizes.v_head_dim);
      }
      lse[row] = s.largest[at] + std::log(s.total[at]);
    }
  }
}

void attend_tile(const AttentionSizes& sizes, const KernelCall& call, const QueryTile& tile,
                 const AttentionScratch& s) {
  const int32_t* sequence_begin = input_as<int32_t>(call, 3);
  const int64_t rows = tile.rows.size();
  int64_t first_key = tile.rows.begin;
  for (int64_t t = tile.rows.begin; t < tile.rows.end; ++t) {
    first_key = std::min(first_key, sizes.begin(sequence_begin[t], t));
  }
  for (int64_t g = 0; g < tile.heads; ++g) {
    pack_a(head_of(call.inputs[0], tile.head + g), tile.rows, {0, sizes.head_dim},
           s.queries + g * kRowTile * sizes.head_dim);
  }
  std::fill_n(s.sums, tile.heads * kRowTile * sizes.v_head_dim, 0.0f);
  std::fill_n(s.largest, tile.heads * kRowTile, kMinusInfinity);
  std::fill_n(s.total, tile.heads * kRowTile, 0.0f);
  for (int64_t key = first_key; key < tile.rows.end; key += kColumnTile) {
    const Range keys{key, std::min(key + kColumnTile, tile.rows.end)};
    pack_b(head_of(call.inputs[1], tile.kv_head, true), keys, {0, sizes.head_dim}, false, s.keys,
           sizes.head_dim * kPanel);
    pack_b(head_of(call.inputs[2], tile.kv_head), {0, sizes.v_head_dim}, keys, false, s.values,
           keys.size() * kPanel);
    for (int64_t g = 0; g < tile.heads; ++g) {
      const F32Tile scores{s.scores, kColumnTile};
      const F32Tile sums{s.sums + g * kRowTile * sizes.v_head_dim, sizes.v_head_dim};
      multiply_slivers(s.queries + g * kRowTile * sizes.head_dim, s.keys, rows, keys.size(), sizes.head_dim,
                       sizes.scale, scores);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t t = tile.rows.begin + i, at = g * kRowTile + i;
        const int64_t low = std::max<int64_t>(sizes.begin(sequence_begin[t], t) - key, 0);
        update_row(sizes, s.scores + i * kColumnTile, low, std::min(t + 1, keys.end) - key,
                   sums.data + i * sums.stride, s.largest[at], s.total[at]);
      }
      add_rows_product(scores, s.values, rows, sizes.v_head_dim, keys.size(), sums);
    }
  }
  finish_tile(sizes, call, tile, s);
}

void attend(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[0].type.shape, call.inputs[2].type.shape);
  const int64_t heads_of_tile = sizes.kv_heads * sizes.subgroups();
  const int64_t scratch_bytes = AttentionScratch(sizes, nullptr).bytes;
  call.threads->run([&](int thread) {
    const AttentionScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
    for (int64_t unit = thread; unit < sizes.row_tiles() * heads_of_tile; unit += call.threads->size()) {
      const int64_t begin = unit / heads_of_tile * kRowTile;
      const int64_t kv_head = unit % heads_of_tile / sizes.subgroups();
      const int64_t first = unit % sizes.subgroups() * kMostGroup;  // head within its group
      attend_tile(sizes, call,
                  {{begin, std::min(begin + kRowTile, sizes.tokens)},
                   kv_head,
                   kv_head * sizes.group() + first,
                   std::min(kMostGroup, sizes.group() - first)},
                  scratch);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(attend);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const AttentionSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape);
  return AttentionScratch(sizes, nullptr).bytes * facts.threads;
}

}  // namespace

const KernelDef& attention_flash_kernel() {
  static constexpr KernelDef def{.op = "attention",
                                 .name = "attention_flash",
                                 .serves = serves_vector_dtypes,
                                 .workspace_bytes = workspace_bytes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(attend)
                                   (call);
                                 }};
  return def;
}

}  // namespace tenon
#endif
