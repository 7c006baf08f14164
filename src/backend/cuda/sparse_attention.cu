// sparse_attention, sparse_paged_attention and the gradient, also with groups of ids and sinks
// (biased_sparse_attention): a warp for each token and head over the keys that ids name. For dk and dv, bits
// say which tokens see a key; a warp for each key and kv head adds over those tokens in order (no atomics on
// floats). dsinks: a block a head.
#include "backend/cuda/attention_keys.h"
#include "backend/cuda/convert.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/lane_bits.h"

namespace tenon::cuda {
namespace {

constexpr unsigned kBlock = kWarpsPerBlock * kWarp;

// Ids are rows of the pack.
struct PackedIds {
  __device__ bool has(int64_t) const { return true; }
  __device__ int64_t row(int64_t, int64_t id) const { return id; }
};

__device__ inline int64_t warp_in_grid() {
  return static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
}

// Ids [tokens, groups, n] that heads read.
struct ChosenIds {
  const int32_t* ids;
  int64_t n, groups, heads_per_group;
  __device__ const int32_t* of(int64_t t, int64_t head) const {
    return ids + (t * groups + head / heads_per_group) * n;
  }
};

ChosenIds chosen_ids(const KernelCall& call, size_t index) {
  const Shape& ids = call.inputs[index].type.shape;
  const int64_t groups = ids.rank() == 3 ? ids[1] : 1;
  return {input_as<int32_t>(call, index), ids[-1], groups, call.inputs[0].type.shape[1] / groups};
}

// The sinks [heads] after a call's first `plain` inputs; null: none.
const float* sinks_of(const KernelCall& call, size_t plain) {
  return call.inputs.size() > plain ? input_as<float>(call, plain) : nullptr;
}

template <int kPer, typename Keys>
__global__ void attend_to_ids(Tensor q, Tensor k, Tensor v, ChosenIds chosen, const float* sinks, Tensor out,
                              float* lse, Keys keys, float scale, Heads h, int64_t items) {
  const int64_t item = warp_in_grid();
  if (item >= items) return;
  const int64_t t = item / h.heads, head = item % h.heads, kv = h.kv_of(head);
  const int32_t* const ids = chosen.of(t, head);
  RunningSum<kPer> running;
  const auto query = WarpRow<kPer>::load_from(q, item * h.head_dim, h.head_dim);
  for (int64_t i = 0; keys.has(t) && i < chosen.n; ++i) {
    const int64_t id = ids[i];
    if (id < 0) continue;
    const int64_t row = keys.row(t, id) * h.kv_heads + kv;
    const auto key = WarpRow<kPer>::load_from(k, row * h.head_dim, h.head_dim);
    running.add(scale * query.dot(key), WarpRow<kPer>::load_from(v, row * h.v_head_dim, h.v_head_dim));
  }
  const bool any = running.total > 0;
  if (any && sinks != nullptr) running.add(sinks[head], WarpRow<kPer>::zero());
  running.sum.multiply(any ? 1 / running.total : 0.0f);
  running.sum.store_to(out, item * h.v_head_dim, h.v_head_dim);
  if (lse != nullptr && threadIdx.x % kWarp == 0) {
    lse[item] = any ? running.largest + logf(running.total) : 0.0f;
  }
}

template <typename Keys>
void launch_attend(const KernelCall& call, const Keys& keys, const Heads& h, size_t ids, float* lse) {
  const float* const sinks = sinks_of(call, ids + 1);
  const int64_t items = call.inputs[0].type.shape[0] * h.heads;
  with_row_width(std::max(h.head_dim, h.v_head_dim), [&](auto per) {
    launch(call, attend_to_ids<decltype(per)::value, Keys>, blocks_for(items, kWarpsPerBlock), kBlock, 0,
           input(call, 0), input(call, 1), input(call, 2), chosen_ids(call, ids), sinks, output(call, 0), lse,
           keys, static_cast<float>(call.attrs->real("scale")), h, items);
  });
}

Heads heads_of(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  return {q[1], v[-2], q[2], v[-1]};
}

void run(const KernelCall& call) {
  launch_attend(call, PackedIds{}, heads_of(call), 3, output_as<float>(call, 1));
}

void run_paged(const KernelCall& call) {
  launch_attend(call, paged_keys(call, 3, false), heads_of(call), 5, nullptr);
}

struct Gradient {
  Tensor q, k, v, out, dout;
  ChosenIds chosen;
  const float *lse, *sinks;
  float* delta;  // [tokens, heads]: dout · out, workspace
  // [groups, ceil(keys / 32), tokens]: bit s % 32 of [group, s / 32, t] says that t sees s, workspace
  uint32_t* seen;
  float scale;
  int64_t tokens, keys;
  Heads h;

  __device__ uint32_t* seen_by(int64_t group, int64_t s) const {
    return seen + (group * ((keys + 31) / 32) + s / 32) * tokens;
  }
};

__global__ void mark_seen(Gradient g) {
  const int64_t i = thread_in_grid(), per_token = g.chosen.groups * g.chosen.n;
  if (i >= g.tokens * per_token) return;
  const int64_t id = g.chosen.ids[i], t = i / per_token, group = i / g.chosen.n % g.chosen.groups;
  if (id >= g.keys) stop();
  if (id >= 0) or_bits(g.seen_by(group, id) + t, 1u << (id % 32));
}

template <int kPer>
__global__ void query_gradients(Gradient g, Tensor dq) {
  const Heads& h = g.h;
  const int64_t item = warp_in_grid();
  if (item >= g.tokens * h.heads) return;
  const int64_t t = item / h.heads, head = item % h.heads, kv = h.kv_of(head);
  const int32_t* const ids = g.chosen.of(t, head);
  const auto query = WarpRow<kPer>::load_from(g.q, item * h.head_dim, h.head_dim);
  const auto dout = WarpRow<kPer>::load_from(g.dout, item * h.v_head_dim, h.v_head_dim);
  const float delta = dout.dot(WarpRow<kPer>::load_from(g.out, item * h.v_head_dim, h.v_head_dim));
  if (threadIdx.x % kWarp == 0) g.delta[item] = delta;
  auto sum = WarpRow<kPer>::zero();
  for (int64_t i = 0; i < g.chosen.n; ++i) {
    const int64_t id = ids[i];
    if (id < 0) continue;
    const int64_t row = id * h.kv_heads + kv;
    const auto key = WarpRow<kPer>::load_from(g.k, row * h.head_dim, h.head_dim);
    const auto value = WarpRow<kPer>::load_from(g.v, row * h.v_head_dim, h.v_head_dim);
    const float weight = expf(g.scale * query.dot(key) - g.lse[item]);
    sum.add(g.scale * weight * (dout.dot(value) - delta), key);
  }
  sum.store_to(dq, item * h.head_dim, h.head_dim);
}

template <int kPer>
__global__ void key_gradients(Gradient g, Tensor dk, Tensor dv) {
  const Heads& h = g.h;
  const int64_t item = warp_in_grid();
  if (item >= g.keys * h.kv_heads) return;
  const int64_t s = item / h.kv_heads, kv = item % h.kv_heads, per_kv = h.heads / h.kv_heads;
  const auto key = WarpRow<kPer>::load_from(g.k, item * h.head_dim, h.head_dim);
  const auto value = WarpRow<kPer>::load_from(g.v, item * h.v_head_dim, h.v_head_dim);
  auto key_sum = WarpRow<kPer>::zero(), value_sum = WarpRow<kPer>::zero();
  int64_t end = 0;  // of the heads that read the same ids
  for (int64_t begin = kv * per_kv; begin < (kv + 1) * per_kv; begin = end) {
    const int64_t group = begin / g.chosen.heads_per_group,
                  group_end = (group + 1) * g.chosen.heads_per_group;
    end = group_end < (kv + 1) * per_kv ? group_end : (kv + 1) * per_kv;
    const uint32_t* const seen = g.seen_by(group, s);
    for (int64_t first = 0; first < g.tokens; first += kWarp) {
      const int64_t mine = first + threadIdx.x % kWarp;
      const bool sees = mine < g.tokens && (seen[mine] >> (s % 32) & 1) != 0;
      for (uint32_t left = lanes_where(sees); left != 0; left &= left - 1) {
        const int64_t t = first + lowest_bit(left);
        for (int64_t head = begin; head < end; ++head) {
          const int64_t at = t * h.heads + head;
          const auto query = WarpRow<kPer>::load_from(g.q, at * h.head_dim, h.head_dim);
          const auto dout = WarpRow<kPer>::load_from(g.dout, at * h.v_head_dim, h.v_head_dim);
          const float weight = expf(g.scale * query.dot(key) - g.lse[at]);
          value_sum.add(weight, dout);
          key_sum.add(g.scale * weight * (dout.dot(value) - g.delta[at]), query);
        }
      }
    }
  }
  key_sum.store_to(dk, item * h.head_dim, h.head_dim);
  value_sum.store_to(dv, item * h.v_head_dim, h.v_head_dim);
}

// A token without keys has no softmax: its delta is zero.
__global__ void sink_gradients(Gradient g, float* dsinks) {
  __shared__ float scratch[kWarp];
  const int64_t head = blockIdx.x;
  float total = 0;
  for (int64_t t = threadIdx.x; t < g.tokens; t += blockDim.x) {
    const int64_t at = t * g.h.heads + head;
    if (g.delta[at] != 0) total -= expf(g.sinks[head] - g.lse[at]) * g.delta[at];
  }
  total = block_sum(total, scratch);
  if (threadIdx.x == 0) dsinks[head] = total;
}

int64_t seen_bytes(const Shape& q, const Shape& k, const Shape& ids) {
  const int64_t groups = ids.rank() == 3 ? ids[1] : 1;
  return groups * ceil_div(k[0], 32) * q[0] * static_cast<int64_t>(sizeof(uint32_t));
}

void run_grad(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &k = call.inputs[1].type.shape;
  const int64_t seen_size = seen_bytes(q, k, call.inputs[3].type.shape);
  std::byte* const seen = call.workspace.data();
  const Gradient g{.q = input(call, 0),
                   .k = input(call, 1),
                   .v = input(call, 2),
                   .out = input(call, 4),
                   .dout = input(call, 6),
                   .chosen = chosen_ids(call, 3),
                   .lse = input_as<float>(call, 5),
                   .sinks = sinks_of(call, 7),
                   .delta = reinterpret_cast<float*>(seen + seen_size),
                   .seen = reinterpret_cast<uint32_t*>(seen),
                   .scale = static_cast<float>(call.attrs->real("scale")),
                   .tokens = q[0],
                   .keys = k[0],
                   .h = heads_of(call)};
  launch_clear(call, seen, seen_size);
  launch(call, mark_seen, blocks_for(call.inputs[3].type.elements()), kThreads, 0, g);
  with_row_width(std::max(g.h.head_dim, g.h.v_head_dim), [&](auto per) {
    constexpr int kPer = decltype(per)::value;
    launch(call, query_gradients<kPer>, blocks_for(g.tokens * g.h.heads, kWarpsPerBlock), kBlock, 0, g,
           output(call, 0));
    launch(call, key_gradients<kPer>, blocks_for(g.keys * g.h.kv_heads, kWarpsPerBlock), kBlock, 0, g,
           output(call, 1), output(call, 2));
  });
  if (g.sinks != nullptr)
    launch(call, sink_gradients, static_cast<unsigned>(g.h.heads), kThreads, 0, g, output_as<float>(call, 3));
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  return seen_bytes(site.inputs[0].shape, site.inputs[1].shape, site.inputs[3].shape) +
         site.inputs[5].bytes();
}

constexpr KernelDef kKernels[] = {
    {.op = "biased_sparse_attention",
     .name = "biased_sparse_attention_rows",
     .serves = serves_attention,
     .run = run},
    {.op = "biased_sparse_attention_grad",
     .name = "biased_sparse_attention_grad_rows",
     .serves = serves_attention,
     .workspace_bytes = workspace,
     .run = run_grad},
    {.op = "biased_sparse_paged_attention",
     .name = "biased_sparse_paged_attention_rows",
     .serves = serves_attention,
     .run = run_paged},
    {.op = "sparse_attention", .name = "sparse_attention_rows", .serves = serves_attention, .run = run},
    {.op = "sparse_attention_grad",
     .name = "sparse_attention_grad_rows",
     .serves = serves_attention,
     .workspace_bytes = workspace,
     .run = run_grad},
    {.op = "sparse_paged_attention",
     .name = "sparse_paged_attention_rows",
     .serves = serves_attention,
     .run = run_paged},
};

}  // namespace

std::span<const KernelDef> sparse_attention_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
