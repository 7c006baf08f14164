// attention_grad: scores are computed again from lse, tile by tile, once by blocks of queries for dq and once
// by blocks of keys for dk and dv, so that each gradient has one owner and its sums one order.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_grad_flash.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/attention-inl.h"
#include "backend/cpu/attention_sizes.h"
#include "backend/cpu/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

enum Input : size_t { kQ, kK, kV, kSequenceBegin, kOut, kLse, kDout };

// The probability of a scaled score, and the derivative of the capped score by it.
struct Probability {
  VF p, slope;
};
HWY_INLINE Probability probability(const AttentionSizes& sizes, VF score, VF lse) {
  const DF d;
  const VF one = hn::Set(d, 1.0f);
  if (sizes.softcap == 0) return {exp_of(hn::Sub(score, lse)), one};
  const VF cap = hn::Set(d, sizes.softcap);
  const VF squashed = hn::Tanh(d, hn::Mul(score, hn::Set(d, 1.0f / sizes.softcap)));
  return {exp_of(hn::MulSub(squashed, cap, lse)), hn::NegMulAdd(squashed, squashed, one)};
}

// p and ds of one row (a query): `p` holds scaled scores, `ds` dout · v; keys outside of [low, high) give 0.
void gradient_of_query(const AttentionSizes& sizes, int64_t low, int64_t high, float lse, float delta,
                       float* p, float* ds) {
  const DF d;
  if (low >= high) {
    std::fill(p, p + kColumnTile, 0.0f);
    std::fill(ds, ds + kColumnTile, 0.0f);
    return;
  }
  const VF lses = hn::Set(d, lse), deltas = hn::Set(d, delta), scale = hn::Set(d, sizes.scale);
  for (int64_t j = 0; j < kColumnTile; j += static_cast<int64_t>(kLanes)) {
    const Probability value = probability(sizes, load(p + j), lses);
    const VF gradient = hn::Mul(hn::Mul(value.p, hn::Sub(load(ds + j), deltas)), hn::Mul(value.slope, scale));
    store(value.p, p + j);
    store(gradient, ds + j);
  }
  std::fill(p, p + low, 0.0f);
  std::fill(p + high, p + kColumnTile, 0.0f);
  std::fill(ds, ds + low, 0.0f);
  std::fill(ds + high, ds + kColumnTile, 0.0f);
}

// p and ds of one row (a key) against the query columns in the scratch, which start at token `first`.
void gradient_of_key(const AttentionSizes& sizes, int64_t key, int64_t first, int64_t count,
                     const AttentionGradScratch& s, float* p, float* ds) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF scale = hn::Set(d, sizes.scale);
  const int64_t low = std::max<int64_t>(key - first, 0);  // queries before the key do not see it
  if (low >= count) {
    std::fill(p, p + kColumnTile, 0.0f);
    std::fill(ds, ds + kColumnTile, 0.0f);
    return;
  }
  const auto own = hn::Set(di, static_cast<int32_t>(key));
  for (int64_t j = 0; j < kColumnTile; j += static_cast<int64_t>(kLanes)) {
    const auto hidden = hn::RebindMask(d, hn::Gt(hn::LoadU(di, s.begins + j), own));
    const Probability value = probability(sizes, load(p + j), load(s.lse + j));
    const VF gradient =
        hn::Mul(hn::Mul(value.p, hn::Sub(load(ds + j), load(s.delta + j))), hn::Mul(value.slope, scale));
    store(hn::IfThenZeroElse(hidden, value.p), p + j);
    store(hn::IfThenZeroElse(hidden, gradient), ds + j);
  }
  std::fill(p, p + low, 0.0f);
  std::fill(p + count, p + kColumnTile, 0.0f);
  std::fill(ds, ds + low, 0.0f);
  std::fill(ds + count, ds + kColumnTile, 0.0f);
}

// Rows of sums to their places in a gradient tensor.
void write_rows(const TensorView& out, int64_t head, Range tokens, const float* sums) {
  const int64_t heads = out.type.shape[1], dim = out.type.shape[2];
  const int64_t bytes = out.type.dtype == DType::bf16 ? 2 : 4;
  for (int64_t t = tokens.begin; t < tokens.end; ++t, sums += dim) {
    round_row(out.type.dtype, sums, dim, out.data + (t * heads + head) * dim * bytes);
  }
}

struct GradientCall {
  const KernelCall& call;
  AttentionSizes sizes;
  const float* delta;  // [tokens, heads]: dout · out
  const int32_t* sequence_begin;

  int64_t begin(int64_t t) const { return sizes.begin(sequence_begin[t], t); }
};

template <typename T>
void dot_rows(const T* a, const T* b, Range rows, int64_t dim, float* out) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const T *x = a + row * dim, *y = b + row * dim;
    VF sum = hn::Zero(DF());
    int64_t i = 0;
    for (; i + kStep <= dim; i += kStep) sum = hn::MulAdd(load(x + i), load(y + i), sum);
    if (i < dim) {
      const size_t rest = static_cast<size_t>(dim - i);
      sum = hn::MulAdd(load_part(x + i, rest), load_part(y + i, rest), sum);
    }
    out[row] = sum_of(sum);
  }
}

void compute_delta(const KernelCall& call, const AttentionSizes& sizes, float* delta) {
  call.threads->parallel_for(sizes.tokens * sizes.heads, 64, [&](Range rows) {
    if (call.inputs[kOut].type.dtype == DType::bf16) {
      dot_rows(input_as<bf16>(call, kOut), input_as<bf16>(call, kDout), rows, sizes.v_head_dim, delta);
    } else {
      dot_rows(input_as<float>(call, kOut), input_as<float>(call, kDout), rows, sizes.v_head_dim, delta);
    }
  });
}

// The tile of a block that begins at `begin`.
Range tile_of(Range block, int64_t begin) {
  return {begin, std::min(begin + kRowTile, block.end)};
}

// Adds a tile of keys, packed in the scratch, to dq of a tile of queries of one head; `at` is the tile's
// first row in the scratch.
template <typename Products>
void add_keys(const GradientCall& g, Range rows, Range keys, int64_t head, int64_t at,
              const AttentionGradScratch& s) {
  const AttentionSizes& sizes = g.sizes;
  const int64_t dim = sizes.head_dim, v_dim = sizes.v_head_dim;
  const float* lse = input_as<float>(g.call, kLse);
  Products::multiply_rows(Products::row_at(s.row_qk, at, dim), s.column_qk, rows.size(), keys.size(), dim,
                          sizes.scale, {s.p, kColumnTile});
  Products::multiply_rows(Products::row_at(s.row_v, at, v_dim), s.column_v, rows.size(), keys.size(), v_dim,
                          1.0f, {s.ds, kColumnTile});
  for (int64_t i = 0; i < rows.size(); ++i) {
    const int64_t t = rows.begin + i, row = t * sizes.heads + head;
    gradient_of_query(sizes, std::max<int64_t>(g.begin(t) - keys.begin, 0),
                      std::min(t + 1, keys.end) - keys.begin, lse[row], g.delta[row], s.p + i * kColumnTile,
                      s.ds + i * kColumnTile);
  }
  Products::add_product({s.ds, kColumnTile}, s.plain_qk, rows.size(), dim, keys.size(),
                        {s.sum_qk + at * dim, dim});
}

// dq of one block of queries, for heads [head, head + heads) of one kv head.
template <typename Products>
void query_block(const GradientCall& g, Range block, int64_t kv_head, int64_t head, int64_t heads,
                 const AttentionGradScratch& s) {
  const int64_t dim = g.sizes.head_dim, v_dim = g.sizes.v_head_dim, stride = g.sizes.query_block();
  for (int64_t h = 0; h < heads; ++h) {
    Products::pack_rows(head_of(g.call.inputs[kQ], head + h), block, dim,
                        Products::row_at(s.row_qk, h * stride, dim));
    Products::pack_rows(head_of(g.call.inputs[kDout], head + h), block, v_dim,
                        Products::row_at(s.row_v, h * stride, v_dim));
  }
  std::fill_n(s.sum_qk, heads * stride * dim, 0.0f);
  // Sequences are contiguous: no query's first key is before that of an earlier one.
  for (int64_t key = g.begin(block.begin); key < block.end; key += kColumnTile) {
    const Range keys{key, std::min(key + kColumnTile, block.end)};
    Products::pack_columns(head_of(g.call.inputs[kK], kv_head, true), keys, {0, dim}, s.column_qk);
    Products::pack_columns(head_of(g.call.inputs[kV], kv_head, true), keys, {0, v_dim}, s.column_v);
    Products::pack_columns(head_of(g.call.inputs[kK], kv_head), {0, dim}, keys, s.plain_qk);
    for (int64_t begin = block.begin; begin < block.end; begin += kRowTile) {
      const Range rows = tile_of(block, begin);
      if (key >= rows.end || g.begin(begin) >= keys.end) continue;
      for (int64_t h = 0; h < heads; ++h) {
        add_keys<Products>(g, rows, keys, head + h, h * stride + begin - block.begin, s);
      }
    }
  }
  for (int64_t h = 0; h < heads; ++h)
    write_rows(g.call.outputs[0], head + h, block, s.sum_qk + h * stride * dim);
}

// Queries [columns.begin, columns.end) of one head as columns of the scratch.
template <typename Products>
void load_query_columns(const GradientCall& g, Range columns, int64_t head, const AttentionGradScratch& s) {
  const int64_t dim = g.sizes.head_dim, v_dim = g.sizes.v_head_dim;
  const float* lse = input_as<float>(g.call, kLse);
  Products::pack_columns(head_of(g.call.inputs[kQ], head, true), columns, {0, dim}, s.column_qk);
  Products::pack_columns(head_of(g.call.inputs[kDout], head, true), columns, {0, v_dim}, s.column_v);
  Products::pack_columns(head_of(g.call.inputs[kQ], head), {0, dim}, columns, s.plain_qk);
  Products::pack_columns(head_of(g.call.inputs[kDout], head), {0, v_dim}, columns, s.plain_v);
  for (int64_t j = 0; j < columns.size(); ++j) {
    const int64_t t = columns.begin + j, at = t * g.sizes.heads + head;
    s.lse[j] = lse[at];
    s.delta[j] = g.delta[at];
    s.begins[j] = static_cast<int32_t>(g.begin(t));
  }
}

// Adds a tile of queries of one head, loaded in the scratch, to dk and dv of a tile of keys, whose first row
// in the scratch is `at`.
template <typename Products>
void add_queries(const GradientCall& g, Range rows, Range columns, int64_t at,
                 const AttentionGradScratch& s) {
  const AttentionSizes& sizes = g.sizes;
  const int64_t dim = sizes.head_dim, v_dim = sizes.v_head_dim;
  Products::multiply_rows(Products::row_at(s.row_qk, at, dim), s.column_qk, rows.size(), columns.size(), dim,
                          sizes.scale, {s.p, kColumnTile});
  Products::multiply_rows(Products::row_at(s.row_v, at, v_dim), s.column_v, rows.size(), columns.size(),
                          v_dim, 1.0f, {s.ds, kColumnTile});
  for (int64_t i = 0; i < rows.size(); ++i) {
    gradient_of_key(sizes, rows.begin + i, columns.begin, columns.size(), s, s.p + i * kColumnTile,
                    s.ds + i * kColumnTile);
  }
  Products::add_product({s.p, kColumnTile}, s.plain_v, rows.size(), v_dim, columns.size(),
                        {s.sum_v + at * v_dim, v_dim});
  Products::add_product({s.ds, kColumnTile}, s.plain_qk, rows.size(), dim, columns.size(),
                        {s.sum_qk + at * dim, dim});
}

// dk and dv of one block of keys. Once a query's first key is past the block every later one's is.
template <typename Products>
void key_block(const GradientCall& g, Range block, int64_t kv_head, const AttentionGradScratch& s) {
  const AttentionSizes& sizes = g.sizes;
  const int64_t dim = sizes.head_dim, v_dim = sizes.v_head_dim;
  Products::pack_rows(head_of(g.call.inputs[kK], kv_head), block, dim, s.row_qk);
  Products::pack_rows(head_of(g.call.inputs[kV], kv_head), block, v_dim, s.row_v);
  std::fill_n(s.sum_qk, sizes.key_block() * dim, 0.0f);
  std::fill_n(s.sum_v, sizes.key_block() * v_dim, 0.0f);
  for (int64_t t = block.begin; t < sizes.tokens && g.begin(t) < block.end; t += kColumnTile) {
    const Range columns{t, std::min(t + kColumnTile, sizes.tokens)};
    for (int64_t h = 0; h < sizes.group(); ++h) {
      load_query_columns<Products>(g, columns, kv_head * sizes.group() + h, s);
      for (int64_t begin = block.begin; begin < block.end; begin += kRowTile) {
        const Range rows = tile_of(block, begin);
        if (begin >= columns.end || g.begin(t) >= rows.end) continue;
        add_queries<Products>(g, rows, columns, begin - block.begin, s);
      }
    }
  }
  write_rows(g.call.outputs[1], kv_head, block, s.sum_qk);
  write_rows(g.call.outputs[2], kv_head, block, s.sum_v);
}

template <typename Products>
void attend_backward(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[kQ].type.shape, call.inputs[kV].type.shape);
  const int64_t scratch_bytes = AttentionGradScratch(sizes, nullptr).bytes;
  float* delta = reinterpret_cast<float*>(call.workspace.data() + scratch_bytes * call.threads->size());
  compute_delta(call, sizes, delta);
  const GradientCall g{call, sizes, delta, input_as<int32_t>(call, kSequenceBegin)};
  const int64_t parts = sizes.kv_heads * sizes.subgroups();  // of the heads
  const int64_t query_units = ceil_div(sizes.tokens, sizes.query_block()) * parts;
  const int64_t units = query_units + ceil_div(sizes.tokens, sizes.key_block()) * sizes.kv_heads;
  const auto block_at = [&](int64_t index, int64_t rows) {
    return Range{index * rows, std::min((index + 1) * rows, sizes.tokens)};
  };
  call.threads->run([&](int thread) {
    const AttentionGradScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
    for (int64_t unit = thread; unit < units; unit += call.threads->size()) {
      if (unit >= query_units) {
        const int64_t index = unit - query_units;
        key_block<Products>(g, block_at(index / sizes.kv_heads, sizes.key_block()), index % sizes.kv_heads,
                            scratch);
        continue;
      }
      const int64_t kv_head = unit % parts / sizes.subgroups();
      const int64_t first = unit % sizes.subgroups() * kMostGroup;
      query_block<Products>(g, block_at(unit / parts, sizes.query_block()), kv_head,
                            kv_head * sizes.group() + first, std::min(kMostGroup, sizes.group() - first),
                            scratch);
    }
  });
}

void attend_backward_f32(const KernelCall& call) {
  attend_backward<F32Products>(call);
}
void attend_backward_bf16_pairs(const KernelCall& call) {
  attend_backward<Bf16PairProducts>(call);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(attend_backward_f32);
HWY_EXPORT(attend_backward_bf16_pairs);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const AttentionSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape);
  return AttentionGradScratch(sizes, nullptr).bytes * facts.threads + sizes.tokens * sizes.heads * 4;
}

}  // namespace

const KernelDef& attention_grad_flash_kernel() {
  static constexpr KernelDef def{
      .op = "attention_grad",
      .name = "attention_grad_flash",
      .serves = serves_vector_dtypes,
      .workspace_bytes = workspace_bytes,
      .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(GemmUnit::f32); },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(attend_backward_f32)
            (call);
          }};
  return def;
}

const KernelDef& attention_grad_flash_bf16_pairs_kernel() {
  static constexpr KernelDef def{
      .op = "attention_grad",
      .name = "attention_grad_flash_bf16_pairs",
      .serves = serves_unit<GemmUnit::bf16_pairs>,
      .workspace_bytes = workspace_bytes,
      .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(GemmUnit::bf16_pairs); },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(attend_backward_bf16_pairs)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
