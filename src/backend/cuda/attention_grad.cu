// attention_grad and biased_attention_grad: dq by a warp for each token and head, dk and dv by a warp for
// each token and kv head, which adds over the queries that see it in order (no atomics), dsinks by a block a
// head or a thread a token and head, and drelative, whose elements have one key each, with dq.
#include "backend/cuda/attention.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"

namespace tenon::cuda {
namespace {

struct Gradient {
  Tensor q, k, v, out, dout;
  const int32_t* sequence_begin;
  const float* lse;
  float* delta;  // [tokens, heads]: dout · out, workspace
  ScoreRule rule;
  Heads h;
  int64_t tokens;
};

template <int kPer>
__global__ void query_gradients(Gradient g, Tensor dq, Tensor drelative) {
  const Heads& h = g.h;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (item >= g.tokens * h.heads) return;
  const int64_t t = item / h.heads, head = item % h.heads, kv = h.kv_of(head), begin = g.sequence_begin[t];
  const auto query = WarpRow<kPer>::load_from(g.q, item * h.head_dim, h.head_dim);
  const auto dout = WarpRow<kPer>::load_from(g.dout, item * h.v_head_dim, h.v_head_dim);
  const float delta = dout.dot(WarpRow<kPer>::load_from(g.out, item * h.v_head_dim, h.v_head_dim));
  if (threadIdx.x % kWarp == 0) g.delta[item] = delta;
  const float lse = g.lse[item];
  const int64_t p = t - begin, first = g.rule.first_seen(p);
  // Distances that no key of this query has.
  for (int64_t d = p - first + 1 + threadIdx.x % kWarp; d < g.rule.extent; d += kWarp)
    store(drelative, item * g.rule.extent + d, 0.0f);
  auto sum = WarpRow<kPer>::zero();
  for (int64_t j = first; j <= p; ++j) {
    const int64_t row = (begin + j) * h.kv_heads + kv;
    const auto key = WarpRow<kPer>::load_from(g.k, row * h.head_dim, h.head_dim);
    const auto value = WarpRow<kPer>::load_from(g.v, row * h.v_head_dim, h.v_head_dim);
    float slope;
    const float weight =
        expf(g.rule.score(query.dot(key), head, j, &slope) + g.rule.learned(item, p - j) - lse);
    const float ds = weight * (dout.dot(value) - delta);
    if (p - j < g.rule.extent && threadIdx.x % kWarp == 0) store(drelative, item * g.rule.extent + p - j, ds);
    sum.add(ds * slope * g.rule.scale, key);
  }
  sum.store_to(dq, item * h.head_dim, h.head_dim);
}

template <int kPer>
__global__ void key_gradients(Gradient g, Tensor dk, Tensor dv) {
  const Heads& h = g.h;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (item >= g.tokens * h.kv_heads) return;
  const int64_t j = item / h.kv_heads, kv = item % h.kv_heads, begin = g.sequence_begin[j];
  const int64_t group = h.heads / h.kv_heads;
  const auto key = WarpRow<kPer>::load_from(g.k, item * h.head_dim, h.head_dim);
  const auto value = WarpRow<kPer>::load_from(g.v, item * h.v_head_dim, h.v_head_dim);
  auto key_sum = WarpRow<kPer>::zero(), value_sum = WarpRow<kPer>::zero();
  // What a token sees begins no earlier than what the token before it sees.
  for (int64_t t = j; t < g.tokens && g.sequence_begin[t] == begin; ++t) {
    if (begin + g.rule.first_seen(t - begin) > j) break;
    for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
      const int64_t at = t * h.heads + head;
      const auto query = WarpRow<kPer>::load_from(g.q, at * h.head_dim, h.head_dim);
      const auto dout = WarpRow<kPer>::load_from(g.dout, at * h.v_head_dim, h.v_head_dim);
      float slope;
      const float score = g.rule.score(query.dot(key), head, j - begin, &slope);
      const float weight = expf(score + g.rule.learned(at, t - j) - g.lse[at]);
      value_sum.add(weight, dout);
      key_sum.add(weight * (dout.dot(value) - g.delta[at]) * slope * g.rule.scale, query);
    }
  }
  key_sum.store_to(dk, item * h.head_dim, h.head_dim);
  value_sum.store_to(dv, item * h.v_head_dim, h.v_head_dim);
}

__global__ void sink_gradients(Gradient g, float* dsinks) {
  __shared__ float scratch[kWarp];
  const int64_t head = blockIdx.x;
  float total = 0;
  for (int64_t t = threadIdx.x; t < g.tokens; t += blockDim.x) {
    const int64_t at = t * g.h.heads + head;
    total -= expf(g.rule.sinks[head] - g.lse[at]) * g.delta[at];
  }
  total = block_sum(total, scratch);
  if (threadIdx.x == 0) dsinks[head] = total;
}

__global__ void token_sink_gradients(Gradient g, float* dsinks) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < g.tokens * g.h.heads) dsinks[at] = -expf(g.rule.sinks[at] - g.lse[at]) * g.delta[at];
}

void run(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  const Gradient g{.q = input(call, 0),
                   .k = input(call, 1),
                   .v = input(call, 2),
                   .out = input(call, 4),
                   .dout = input(call, 6),
                   .sequence_begin = input_as<int32_t>(call, 3),
                   .lse = input_as<float>(call, 5),
                   .delta = reinterpret_cast<float*>(call.workspace.data()),
                   .rule = score_rule(call, 7),
                   .h = {q[1], v[1], q[2], v[2]},
                   .tokens = q[0]};
  constexpr unsigned kBlock = kWarpsPerBlock * kWarp;
  with_row_width(std::max(q[2], v[2]), [&](auto per) {
    constexpr int kPer = decltype(per)::value;
    launch(call, query_gradients<kPer>, blocks_for(q[0] * q[1], kWarpsPerBlock), kBlock, 0, g,
           output(call, 0), g.rule.extent > 0 ? output(call, call.outputs.size() - 1) : Tensor{});
    launch(call, key_gradients<kPer>, blocks_for(q[0] * v[1], kWarpsPerBlock), kBlock, 0, g, output(call, 1),
           output(call, 2));
  });
  if (g.rule.sinks == nullptr) return;
  if (g.rule.sinks_by_token) {
    launch(call, token_sink_gradients, blocks_for(q[0] * q[1]), kThreads, 0, g, output_as<float>(call, 3));
  } else {
    launch(call, sink_gradients, static_cast<unsigned>(q[1]), kThreads, 0, g, output_as<float>(call, 3));
  }
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  return site.inputs[5].bytes();
}

constexpr KernelDef kKernels[] = {
    {.op = "attention_grad",
     .name = "attention_grad_rows",
     .serves = serves_attention,
     .workspace_bytes = workspace,
     .run = run},
    {.op = "biased_attention_grad",
     .name = "biased_attention_grad_rows",
     .serves = serves_attention,
     .workspace_bytes = workspace,
     .run = run},
};

}  // namespace

std::span<const KernelDef> attention_grad_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
