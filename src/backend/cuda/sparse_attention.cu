// sparse_attention, sparse_paged_attention and the gradient: a warp for each token and head over the keys
// that ids name. For dk and dv, bits say which tokens see a key; a warp for each key and kv head adds over
// those tokens in order (no atomics on floats).
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

template <int kPer, typename Keys>
__global__ void attend_to_ids(Tensor q, Tensor k, Tensor v, const int32_t* ids, int64_t n, Tensor out,
                              float* lse, Keys keys, float scale, Heads h, int64_t items) {
  const int64_t item = warp_in_grid();
  if (item >= items) return;
  const int64_t t = item / h.heads, kv = h.kv_of(item % h.heads);
  RunningSum<kPer> running;
  const auto query = WarpRow<kPer>::load_from(q, item * h.head_dim, h.head_dim);
  for (int64_t i = 0; keys.has(t) && i < n; ++i) {
    const int64_t id = ids[t * n + i];
    if (id < 0) continue;
    const int64_t row = keys.row(t, id) * h.kv_heads + kv;
    const auto key = WarpRow<kPer>::load_from(k, row * h.head_dim, h.head_dim);
    running.add(scale * query.dot(key), WarpRow<kPer>::load_from(v, row * h.v_head_dim, h.v_head_dim));
  }
  const bool any = running.total > 0;
  running.sum.multiply(any ? 1 / running.total : 0.0f);
  running.sum.store_to(out, item * h.v_head_dim, h.v_head_dim);
  if (lse != nullptr && threadIdx.x % kWarp == 0) {
    lse[item] = any ? running.largest + logf(running.total) : 0.0f;
  }
}

template <typename Keys>
void launch_attend(const KernelCall& call, const Keys& keys, const Heads& h, size_t ids, float* lse) {
  const int64_t items = call.inputs[0].type.shape[0] * h.heads;
  with_row_width(std::max(h.head_dim, h.v_head_dim), [&](auto per) {
    launch(call, attend_to_ids<decltype(per)::value, Keys>, blocks_for(items, kWarpsPerBlock), kBlock, 0,
           input(call, 0), input(call, 1), input(call, 2), input_as<int32_t>(call, ids),
           call.inputs[ids].type.shape[1], output(call, 0), lse, keys,
           static_cast<float>(call.attrs->real("scale")), h, items);
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
  const Shape& k = call.inputs[1].type.shape;
  const PagedKeys keys{input_as<int32_t>(call, 3),
                       input_as<int32_t>(call, 4),
                       nullptr,
                       call.inputs[3].type.shape[1],
                       k[1],
                       k[0]};
  launch_attend(call, keys, heads_of(call), 5, nullptr);
}

struct Gradient {
  Tensor q, k, v, out, dout;
  const int32_t* ids;
  const float* lse;
  float* delta;    // [tokens, heads]: dout · out, workspace
  uint32_t* seen;  // [ceil(tokens / 32), tokens]: bit s % 32 of [s / 32, t] says that t sees s, workspace
  float scale;
  int64_t tokens, n;
  Heads h;
};

__global__ void mark_seen(Gradient g) {
  const int64_t i = thread_in_grid();
  if (i >= g.tokens * g.n) return;
  const int64_t id = g.ids[i];
  if (id >= g.tokens) stop();
  if (id >= 0) or_bits(g.seen + id / 32 * g.tokens + i / g.n, 1u << (id % 32));
}

template <int kPer>
__global__ void query_gradients(Gradient g, Tensor dq) {
  const Heads& h = g.h;
  const int64_t item = warp_in_grid();
  if (item >= g.tokens * h.heads) return;
  const int64_t t = item / h.heads, kv = h.kv_of(item % h.heads);
  const auto query = WarpRow<kPer>::load_from(g.q, item * h.head_dim, h.head_dim);
  const auto dout = WarpRow<kPer>::load_from(g.dout, item * h.v_head_dim, h.v_head_dim);
  const float delta = dout.dot(WarpRow<kPer>::load_from(g.out, item * h.v_head_dim, h.v_head_dim));
  if (threadIdx.x % kWarp == 0) g.delta[item] = delta;
  auto sum = WarpRow<kPer>::zero();
  for (int64_t i = 0; i < g.n; ++i) {
    const int64_t id = g.ids[t * g.n + i];
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
  if (item >= g.tokens * h.kv_heads) return;
  const int64_t s = item / h.kv_heads, kv = item % h.kv_heads, group = h.heads / h.kv_heads;
  const auto key = WarpRow<kPer>::load_from(g.k, item * h.head_dim, h.head_dim);
  const auto value = WarpRow<kPer>::load_from(g.v, item * h.v_head_dim, h.v_head_dim);
  auto key_sum = WarpRow<kPer>::zero(), value_sum = WarpRow<kPer>::zero();
  for (int64_t first = 0; first < g.tokens; first += kWarp) {
    const int64_t mine = first + threadIdx.x % kWarp;
    const bool sees = mine < g.tokens && (g.seen[s / 32 * g.tokens + mine] >> (s % 32) & 1) != 0;
    for (uint32_t left = lanes_where(sees); left != 0; left &= left - 1) {
      const int64_t t = first + lowest_bit(left);
      for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        const int64_t at = t * h.heads + head;
        const auto query = WarpRow<kPer>::load_from(g.q, at * h.head_dim, h.head_dim);
        const auto dout = WarpRow<kPer>::load_from(g.dout, at * h.v_head_dim, h.v_head_dim);
        const float weight = expf(g.scale * query.dot(key) - g.lse[at]);
        value_sum.add(weight, dout);
        key_sum.add(g.scale * weight * (dout.dot(value) - g.delta[at]), query);
      }
    }
  }
  key_sum.store_to(dk, item * h.head_dim, h.head_dim);
  value_sum.store_to(dv, item * h.v_head_dim, h.v_head_dim);
}

int64_t seen_bytes(int64_t tokens) {
  return ceil_div(tokens, 32) * tokens * static_cast<int64_t>(sizeof(uint32_t));
}

void run_grad(const KernelCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0];
  std::byte* const seen = call.workspace.data();
  const Gradient g{.q = input(call, 0),
                   .k = input(call, 1),
                   .v = input(call, 2),
                   .out = input(call, 4),
                   .dout = input(call, 6),
                   .ids = input_as<int32_t>(call, 3),
                   .lse = input_as<float>(call, 5),
                   .delta = reinterpret_cast<float*>(seen + seen_bytes(tokens)),
                   .seen = reinterpret_cast<uint32_t*>(seen),
                   .scale = static_cast<float>(call.attrs->real("scale")),
                   .tokens = tokens,
                   .n = call.inputs[3].type.shape[1],
                   .h = heads_of(call)};
  launch_clear(call, seen, seen_bytes(tokens));
  launch(call, mark_seen, blocks_for(tokens * g.n), kThreads, 0, g);
  with_row_width(std::max(g.h.head_dim, g.h.v_head_dim), [&](auto per) {
    constexpr int kPer = decltype(per)::value;
    launch(call, query_gradients<kPer>, blocks_for(tokens * g.h.heads, kWarpsPerBlock), kBlock, 0, g,
           output(call, 0));
    launch(call, key_gradients<kPer>, blocks_for(tokens * g.h.kv_heads, kWarpsPerBlock), kBlock, 0, g,
           output(call, 1), output(call, 2));
  });
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  return seen_bytes(site.inputs[0].shape[0]) + site.inputs[5].bytes();
}

constexpr KernelDef kKernels[] = {
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
