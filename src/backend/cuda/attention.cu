// attention and biased_attention over packed sequences, paged_attention and biased_paged_attention over
// caches: a warp for each token and head, keys one after the other with a running softmax. It serves any head
// size and every option; the order of additions depends on a token's own keys alone.
#include "backend/cuda/attention_keys.h"

#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"

namespace tenon::cuda {
namespace {

// Joins the sums of a block's warps in their order; the result is warp 0's.
template <int kPer, int kWarps>
__device__ void join_warps(RunningSum<kPer>& mine) {
  __shared__ float largest[kWarps], total[kWarps];
  __shared__ float rows[kWarps][kPer * kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane == 0) {
    largest[warp] = mine.largest;
    total[warp] = mine.total;
  }
  for (int i = 0; i < kPer; ++i) rows[warp][i * kWarp + lane] = mine.sum.element[i];
  __syncthreads();
  if (warp != 0) return;
  for (int other = 1; other < kWarps; ++other) {
    if (total[other] == 0) continue;
    const float next = fmaxf(mine.largest, largest[other]);
    const float kept = expf(mine.largest - next), added = expf(largest[other] - next);
    mine.total = mine.total * kept + total[other] * added;
    for (int i = 0; i < kPer; ++i) {
      mine.sum.element[i] = mine.sum.element[i] * kept + rows[other][i * kWarp + lane] * added;
    }
    mine.largest = next;
  }
}

// A block has kWarpsOfQuery warps for one token and head, which take its keys by turns, or else
// kWarpsPerBlock tokens and heads.
template <int kPer, bool kRelative, typename Keys>
__global__ void __launch_bounds__(Keys::kShared ? kWarpsOfQuery<kPer, Keys>* kWarp : kWarpsPerBlock* kWarp)
    attend(Tensor q, Tensor k, Tensor v, Tensor out, float* lse, Keys keys, ScoreRule rule, Heads h,
           int64_t items) {
  constexpr int kWarps = kWarpsOfQuery<kPer, Keys>;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t item = Keys::kShared ? blockIdx.x : static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + warp;
  const int turn = Keys::kShared ? warp : 0;
  if (item >= items) return;
  const int64_t t = item / h.heads, head = item % h.heads, kv = h.kv_of(head);
  RunningSum<kPer> running;
  if (!keys.has(t)) {
    if (turn == 0) running.sum.store_to(out, item * h.v_head_dim, h.v_head_dim);
    return;
  }
  const auto query = WarpRow<kPer>::load_from(q, item * h.head_dim, h.head_dim);
  if (rule.sinks != nullptr && turn == 0) {
    running.largest = rule.sinks[rule.sink_index(item, head)];
    running.total = 1;
  }
  const int64_t p = keys.position(t);
  constexpr int kBatch = kPer > 4 ? 1 : kRelative ? 2 : 4;  // keys whose loads are on their way together
  for (int64_t j = rule.first_seen(p) + turn; j <= p; j += kBatch * kWarps) {
    WarpRow<kPer> value[kBatch];
    float product[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t at = j + b * kWarps;
      const int64_t row = keys.row(t, at <= p ? at : j) * h.kv_heads + kv;
      const auto key = WarpRow<kPer>::load_from(k, row * h.head_dim, h.head_dim);
      value[b] = WarpRow<kPer>::load_from(v, row * h.v_head_dim, h.v_head_dim);
      product[b] = query.part_of_dot(key);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t at = j + b * kWarps;
      float slope;
      float score = rule.score(warp_sum(product[b]), head, at, &slope);
      if (at > p) continue;
      if constexpr (kRelative) score += rule.learned(item, p - at);
      running.add(score, value[b]);
    }
  }
  if constexpr (Keys::kShared) join_warps<kPer, kWarps>(running);
  if (turn != 0) return;
  running.sum.multiply(1 / running.total);
  running.sum.store_to(out, item * h.v_head_dim, h.v_head_dim);
  if (lse != nullptr && threadIdx.x % kWarp == 0) lse[item] = running.largest + logf(running.total);
}

template <bool kRelative, typename Keys>
void launch_kind(const KernelCall& call, const Keys& keys, const Heads& h, const ScoreRule& rule,
                 float* lse) {
  const int64_t items = call.inputs[0].type.shape[0] * h.heads;
  const unsigned blocks = Keys::kShared ? static_cast<unsigned>(items) : blocks_for(items, kWarpsPerBlock);
  with_row_width(std::max(h.head_dim, h.v_head_dim), [&](auto per) {
    constexpr int kPer = decltype(per)::value;
    constexpr unsigned kThreadsOfBlock = (Keys::kShared ? kWarpsOfQuery<kPer, Keys> : kWarpsPerBlock) * kWarp;
    launch(call, attend<kPer, kRelative, Keys>, blocks, kThreadsOfBlock, 0, input(call, 0), input(call, 1),
           input(call, 2), output(call, 0), lse, keys, rule, h, items);
  });
}

template <typename Keys>
void launch_attend(const KernelCall& call, const Keys& keys, const Heads& h, size_t plain, float* lse) {
  const ScoreRule rule = score_rule(call, plain);
  if (rule.extent > 0) return launch_kind<true>(call, keys, h, rule, lse);
  launch_kind<false>(call, keys, h, rule, lse);
}

void run_packed(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  launch_attend(call, PackedKeys{input_as<int32_t>(call, 3)}, {q[1], v[1], q[2], v[2]}, 4,
                output_as<float>(call, 1));
}

void run_paged(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  launch_attend(call, paged_keys(call, 3), {q[1], v[2], q[2], v[3]}, 6, nullptr);
}

constexpr KernelDef kKernels[] = {
    {.op = "attention", .name = "attention_rows", .serves = serves_attention, .run = run_packed},
    {.op = "biased_attention",
     .name = "biased_attention_rows",
     .serves = serves_attention,
     .run = run_packed},
    {.op = "paged_attention", .name = "paged_attention_rows", .serves = serves_attention, .run = run_paged},
    {.op = "biased_paged_attention",
     .name = "biased_paged_attention_rows",
     .serves = serves_attention,
     .run = run_paged},
};

}  // namespace

std::span<const KernelDef> attention_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
