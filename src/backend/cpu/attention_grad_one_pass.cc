// attention_grad that computes scores once for all three gradients. Tokens are cut into chunks; a unit of
// work is a kv head's chunk of keys against a chunk of queries, and step p takes every chunk against the
// queries p chunks later. So no two units of a step share a sum, each sum has one order, and any thread may
// take any unit.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_grad_one_pass.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/attention_visible-inl.h"
#include "backend/cpu/work_queue.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

enum Input : size_t { kQ, kK, kV, kSequenceBegin, kOut, kLse, kDout };

// A gradient as it is summed: f32, in the output where that is f32.
struct GradientSums {
  float* data;
  int64_t heads, dim;

  int64_t stride() const { return heads * dim; }
  float* at(int64_t token, int64_t head) const { return data + token * stride() + head * dim; }
};

struct OnePass {
  const KernelCall& call;
  AttentionSizes sizes;
  const int32_t* sequence_begin;
  GradientSums sums[3];  // dq, dk, dv

  int64_t begin(int64_t t) const { return sizes.begin(sequence_begin[t], t); }
  Range chunk(int64_t index) const {
    return {index * kVisibleChunk, std::min((index + 1) * kVisibleChunk, sizes.tokens)};
  }
};

// Probabilities and gradients of scores of a row, in place: `p` holds scaled scores, `ds` dout·v. What it
// does not see becomes zero.
void gradient_row(const AttentionSizes& sizes, Range seen, float lse, float delta, float* p, float* ds) {
  const DF d;
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  const VF lses = hn::Set(d, lse), deltas = hn::Set(d, delta), scale = hn::Set(d, sizes.scale);
  const VF one = hn::Set(d, 1.0f), cap = hn::Set(d, sizes.softcap);
  const VF inverse = hn::Set(d, sizes.softcap > 0 ? 1.0f / sizes.softcap : 0.0f);
  for (int64_t j = seen.begin / kStep * kStep; j < seen.end; j += kStep) {
    const VF score = load(p + j);
    VF slope = scale, value;
    if (sizes.softcap > 0) {
      const VF squashed = hn::Tanh(d, hn::Mul(score, inverse));
      slope = hn::Mul(scale, hn::NegMulAdd(squashed, squashed, one));
      value = hn::MulSub(squashed, cap, lses);
    } else {
      value = hn::Sub(score, lses);
    }
    value = exp_of_bounded(value);
    store(value, p + j);
    store(hn::Mul(hn::Mul(value, slope), hn::Sub(load(ds + j), deltas)), ds + j);
  }
  for (float* row : {p, ds}) {
    std::fill(row, row + seen.begin, 0.0f);
    std::fill(row + seen.end, row + kVisibleKeys, 0.0f);
  }
}

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
  multiply_visible(tile, s.q, stride, s.key_panels + at * dim, dim, sizes.scale, s.p);
  multiply_visible(tile, s.dout, v_stride, s.value_panels + at * v_dim, v_dim, 1.0f, s.ds);
  for (int64_t i = 0; i < tile.rows.size(); ++i) {
    gradient_row(sizes, tile.keys_of(i), s.lse[i], s.delta[i], s.p + i * kVisibleKeys,
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

void clear(const OnePass& pass) {
  pass.call.threads->parallel_for(pass.sizes.tokens, 16, [&](Range tokens) {
    for (const GradientSums& sums : pass.sums)
      std::fill(sums.at(tokens.begin, 0), sums.at(tokens.end, 0), 0.0f);
  });
}

// Sums that do not lie in the outputs are rounded into them.
void write_outputs(const OnePass& pass) {
  for (size_t i = 0; i < 3; ++i) {
    const TensorView& out = pass.call.outputs[i];
    if (out.type.dtype == DType::f32) continue;
    const GradientSums& sums = pass.sums[i];
    pass.call.threads->parallel_for(pass.sizes.tokens, 16, [&](Range tokens) {
      round_row(out.type.dtype, sums.at(tokens.begin, 0), tokens.size() * sums.stride(),
                out.data + tokens.begin * sums.stride() * 2);
    });
  }
}

void attend_backward_once(const KernelCall& call) {
  const AttentionSizes sizes(*call.attrs, call.inputs[kQ].type.shape, call.inputs[kV].type.shape);
  const int64_t scratch_bytes = OnePassScratch(sizes, nullptr).bytes;
  ScratchCutter cutter(call.workspace.data() + scratch_bytes * call.threads->size());
  OnePass pass{call, sizes, input_as<int32_t>(call, kSequenceBegin), {}};
  for (size_t i = 0; i < 3; ++i) {
    const Type& type = call.outputs[i].type;
    float* data = type.dtype == DType::f32 ? output_as<float>(call, i) : cutter.take(type.shape.elements());
    pass.sums[i] = {data, type.shape[1], type.shape[2]};
  }
  clear(pass);
  const int64_t chunks = ceil_div(sizes.tokens, kVisibleChunk);
  for (int64_t step = 0; step < chunks; ++step) {
    WorkQueue queue((chunks - step) * sizes.kv_heads);
    call.threads->run([&](int thread) {
      const OnePassScratch scratch(sizes, call.workspace.data() + thread * scratch_bytes);
      for (int64_t unit; (unit = queue.take()) < (chunks - step) * sizes.kv_heads;) {
        const int64_t index = unit / sizes.kv_heads;
        add_chunk(pass, pass.chunk(index), pass.chunk(index + step), unit % sizes.kv_heads, scratch);
      }
    });
  }
  write_outputs(pass);
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
  ScratchCutter sums;
  for (const Type& type : site.outputs) {
    if (type.dtype != DType::f32) sums.take(type.shape.elements());
  }
  return OnePassScratch(sizes, nullptr).bytes * facts.threads + sums.used();
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
