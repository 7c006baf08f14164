// attention and biased_attention over packed sequences, paged_attention and biased_paged_attention over
// caches: a warp for each token and head, keys one after the other with a running softmax. It serves any head
// size and every option; the order of additions depends on a token's own keys alone.
#include "backend/cuda/attention.h"

#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"

namespace tenon::cuda {
namespace {

// Where the keys of one query lie.
struct PackedKeys {
  const int32_t* sequence_begin;
  __device__ bool has(int64_t) const { return true; }
  __device__ int64_t position(int64_t t) const { return t - sequence_begin[t]; }
  __device__ int64_t row(int64_t t, int64_t j) const { return sequence_begin[t] + j; }
};

struct PagedKeys {
  const int32_t *page_table, *stream, *positions;
  int64_t max_pages, page_tokens, pages;
  __device__ bool has(int64_t t) const { return stream[t] >= 0; }
  __device__ int64_t position(int64_t t) const { return positions[t]; }
  __device__ int64_t row(int64_t t, int64_t j) const {
    if (j / page_tokens >= max_pages) stop();
    const int64_t page = page_table[stream[t] * max_pages + j / page_tokens];
    if (page < 0 || page >= pages) stop();
    return page * page_tokens + j % page_tokens;
  }
};

template <int kPer, typename Keys>
__global__ void attend(Tensor q, Tensor k, Tensor v, Tensor out, float* lse, Keys keys, ScoreRule rule,
                       Heads h, int64_t items) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (item >= items) return;
  const int64_t t = item / h.heads, head = item % h.heads, kv = h.kv_of(head);
  auto sum = WarpRow<kPer>::zero();
  if (!keys.has(t)) return sum.store_to(out, item * h.v_head_dim, h.v_head_dim);
  const auto query = WarpRow<kPer>::load_from(q, item * h.head_dim, h.head_dim);
  float largest = rule.sinks ? rule.sinks[head] : -INFINITY, total = rule.sinks ? 1.0f : 0.0f, slope;
  const int64_t p = keys.position(t);
  for (int64_t j = rule.first_seen(p); j <= p; ++j) {
    const int64_t row = keys.row(t, j) * h.kv_heads + kv;
    const auto key = WarpRow<kPer>::load_from(k, row * h.head_dim, h.head_dim);
    const auto value = WarpRow<kPer>::load_from(v, row * h.v_head_dim, h.v_head_dim);
    const float score = rule.score(query.dot(key), head, j, &slope);
    const float next = fmaxf(largest, score), kept = expf(largest - next), weight = expf(score - next);
    total = total * kept + weight;
    sum.multiply(kept);
    sum.add(weight, value);
    largest = next;
  }
  sum.multiply(1 / total);
  sum.store_to(out, item * h.v_head_dim, h.v_head_dim);
  if (lse != nullptr && threadIdx.x % kWarp == 0) lse[item] = largest + logf(total);
}

template <typename Keys>
void launch_attend(const KernelCall& call, const Keys& keys, const Heads& h, size_t plain, float* lse) {
  const int64_t items = call.inputs[0].type.shape[0] * h.heads;
  with_row_width(std::max(h.head_dim, h.v_head_dim), [&](auto per) {
    launch(call, attend<decltype(per)::value, Keys>, blocks_for(items, kWarpsPerBlock),
           kWarpsPerBlock * kWarp, 0, input(call, 0), input(call, 1), input(call, 2), output(call, 0), lse,
           keys, score_rule(call, plain), h, items);
  });
}

void run_packed(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  launch_attend(call, PackedKeys{input_as<int32_t>(call, 3)}, {q[1], v[1], q[2], v[2]}, 4,
                output_as<float>(call, 1));
}

void run_paged(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &k = call.inputs[1].type.shape, &v = call.inputs[2].type.shape;
  const PagedKeys keys{input_as<int32_t>(call, 3),
                       input_as<int32_t>(call, 4),
                       input_as<int32_t>(call, 5),
                       call.inputs[3].type.shape[1],
                       k[1],
                       k[0]};
  launch_attend(call, keys, {q[1], v[2], q[2], v[3]}, 6, nullptr);
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
