// attention_grad: scores are computed again from lse, tile by tile, once by query tiles for dq and once by
// key tiles for dk and dv, so that each gradient has one owner and its sums one order.
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

// dq of one tile of queries, for heads [head, head + heads) of one kv head.
void query_tile(const GradientCall& g, Range rows, int64_t kv_head, int64_t head, int64_t heads,
                const AttentionGradScratch& s) {
  const AttentionSizes& sizes = g.sizes;
  const int64_t dim = sizes.head_dim, v_dim = sizes.v_head_dim;
  const float* lse = input_as<float>(g.call, kLse);
  int64_t first_key = rows.begin;
  for (int64_t t = rows.begin; t < rows.end; ++t) first_key = std::min(first_key, g.begin(t));
  for (int64_t h = 0; h < heads; ++h) {
    pack_a(head_of(g.call.inputs[kQ], head + h), rows, {0, dim}, s.row_qk + h * kRowTile * dim);
    pack_a(head_of(g.call.inputs[kDout], head + h), rows, {0, v_dim}, s.row_v + h * kRowTile * v_dim);
  }
  std::fill_n(s.sum_qk, heads * kRowTile * dim, 0.0f);
  for (int64_t key = first_key; key < rows.end; key += kColumnTile) {
    const Range keys{key, std::min(key + kColumnTile, rows.end)};
    pack_b(head_of(g.call.inputs[kK], kv_head, true), keys, {0, dim}, false, s.column_qk, dim * kPanel);
    pack_b(head_of(g.call.inputs[kV], kv_head, true), keys, {0, v_dim}, false, s.column_v, v_dim * kPanel);
    pack_b(head_of(g.call.inputs[kK], kv_head), {0, dim}, keys, false, s.plain_qk, keys.size() * kPanel);
    for (int64_t h = 0; h < heads; ++h) {
      multiply_slivers(s.row_qk + h * kRowTile * dim, s.column_qk, rows.size(), keys.size(), dim, sizes.scale,
                       {s.p, kColumnTile});
      multiply_slivers(s.row_v + h * kRowTile * v_dim, s.column_v, rows.size(), keys.size(), v_dim, 1.0f,
                       {s.ds, kColumnTile});
      for (int64_t i = 0; i < rows.size(); ++i) {
        const int64_t t = rows.begin + i, at = t * sizes.heads + head + h;
        gradient_of_query(sizes, std::max<int64_t>(g.begin(t) - key, 0), std::min(t + 1, keys.end) - key,
                          lse[at], g.delta[at], s.p + i * kColumnTile, s.ds + i * kColumnTile);
      }
      add_rows_product({s.ds, kColumnTile}, s.plain_qk, rows.size(), dim, keys.size(),
                       {s.sum_qk + h * kRowTile * dim, dim});
    }
  }
  for (int64_t h = 0; h < heads; ++h)
    write_rows(g.call.outputs[0], head + h, rows, s.sum_qk + h * kRowTile * dim);
}

// Queries [columns.begin, columns.end) of one head as columns of the scratch.
void load_query_columns(const GradientCall& g, Range columns, int64_t head, const AttentionGradScratch& s) {
  const int64_t dim = g.sizes.head_dim, v_dim = g.sizes.v_head_dim;
  const float* lse = input_as<float>(g.call, kLse);
  pack_b(head_of(g.call.inputs[kQ], head, true), columns, {0, dim}, false, s.column_qk, dim * kPanel);
  pack_b(head_of(g.call.inputs[kDout], head, true), columns, {0, v_dim}, false, s.column_v, v_dim * kPanel);
  pack_b(head_of(g.call.inputs[kQ], head), {0, dim}, columns, false, s.plain_qk, columns.size() * kPanel);
  pack_b(head_of(g.call.inputs[kDout], head), {0, v_dim}, columns, false, s.plain_v, columns.size() * kPanel);
  for (int64_t j = 0; j < columns.size(); ++j) {
    const int64_t t = columns.begin + j, at = t * g.sizes.heads + head;
    s.lse[j] = lse[at];
    s.delta[j] = g.delta[at];
    s.begins[j] = static_cast<int32_t>(g.begin(t));
  }
}

// dk and dv of one tile of keys. Sequences are contiguous, so once a query's first key is past the tile every
// later one's is.
void key_tile(const GradientCall& g, Range rows, int64_t kv_head, const AttentionGradScratch& s) {
  const AttentionSizes& sizes = g.sizes;
  const int64_t dim = sizes.head_dim, v_dim = sizes.v_head_dim;
  pack_a(head_of(g.call.inputs[kK], kv_head), rows, {0, dim}, s.row_qk);
  pack_a(head_of(g.call.inputs[kV], kv_head), rows, {0, v_dim}, s.row_v);
  std::fill_n(s.sum_qk, kRowTile * dim, 0.0f);
  std::fill_n(s.sum_v, kRowTile * v_dim, 0.0f);
  for (int64_t t = rows.begin; t < sizes.tokens && g.begin(t) < rows.end; t += kColumnTile) {
    const Range columns{t, std::min(t + kColumnTile, sizes.tokens)};
    for (int64_t h = 0; h < sizes.group(); ++h) {
      load_query_columns(g, columns, kv_head * sizes.group() + h, s);
      multiply_slivers(s.row_qk, s.column_qk, rows.size(), columns.size(), dim, sizes.scale,
                       {s.p, kColumnTile});
      multiply_slivers(s.row_v, s.column_v, rows.size(), columns.size(), v_dim, 1.0f, {s.ds, kColumnTile});
      for (int64_t i = 0; i < rows.size(); ++i) {
        gradient_of_key(sizes, rows.begin + i, t, columns.size(), s, s.p + i * kColumnTile,
                        s.ds + i * kColumnTile);
      }
      add_rows_product({s.p, kColumnTile}, s.plain_v, rows.size(), v_dim, columns.size(), {s.sum_v, v_dim});
      add_rows_product({s.ds, kColumnTile}, s.plain_qk, rows.size(), dim, columns.size(), {s.sum_qk, dim});
    }
  }
  write_rows(g.call.outputs[1], kv_head, rows, s.sum_qk);
  write_rows(g.call.outputs[2], kv_head, rows, s.sum_v);
}

void attend_backward(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[kQ].type.shape, call.inputs[kV].type.shape);
  const int64_t scratch_bytes = AttentionGradScratch(sizes, nullptr).bytes;
  float* delta = reinterpret_cast<float*>(call.workspace.data() + scratch_bytes * call.threads->size());
  compute_delta(call, sizes, delta);
  const GradientCall g{call, sizes, delta, input_as<int32_t>(call, kSequenceBegin)};
  const int64_t heads_of_tile = sizes.kv_heads * sizes.subgroups();
  const int64_t query_units = sizes.row_tiles() * heads_of_tile;
  const int64_t units = query_units + sizes.row_tiles() * sizes.kv_heads;
  call.threads->run([&](int thread) {
    const AttentionGradScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
    for (int64_t unit = thread; unit < units; unit += call.threads->size()) {
      const bool is_query = unit < query_units;
      const int64_t index = is_query ? unit : unit - query_units;
      const int64_t per_tile = is_query ? heads_of_tile : sizes.kv_heads;
      const int64_t begin = index / per_tile * kRowTile;
      const Range rows{begin, std::min(begin + kRowTile, sizes.tokens)};
      if (!is_query) {
        key_tile(g, rows, index % per_tile, scratch);
        continue;
      }
      const int64_t kv_head = index % per_tile / sizes.subgroups();
      const int64_t first = index % sizes.subgroups() * kMostGroup;
      query_tile(g, rows, kv_head, kv_head * sizes.group() + first,
                 std::min(kMostGroup, sizes.group() - first), scratch);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(attend_backward);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const AttentionSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape);
  return AttentionGradScratch(sizes, nullptr).bytes * facts.threads + sizes.tokens * sizes.heads * 4;
}

}  // namespace

const KernelDef& attention_grad_flash_kernel() {
  static constexpr KernelDef def{.op = "attention_grad",
                                 .name = "attention_grad_flash",
                                 .serves = serves_vector_dtypes,
                                 .workspace_bytes = workspace_bytes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(attend_backward)(call);
                                 }};
  return def;
}

}  // namespace tenon
#endif
