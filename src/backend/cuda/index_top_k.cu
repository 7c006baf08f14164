// index_top_k and index_top_k_paged: a thread for the score of each token and key, then a warp for each
// token, which finds the n-th largest score bit by bit and writes the ids at or above it in rising order.
#include "backend/cuda/attention_keys.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/lane_bits.h"

namespace tenon::cuda {
namespace {

constexpr unsigned kScoreThreads = 128;

struct Index {
  Tensor q, k;
  const float* weights;
  float* scores;  // [tokens, most_keys], workspace
  int64_t tokens, heads, dim, most_keys, n;
  float scale;
};

template <typename Keys>
__device__ int64_t keys_of(const Keys& keys, int64_t t) {
  return keys.has(t) ? keys.position(t) + 1 : 0;
}

template <typename Keys>
__global__ void score_keys(Index x, Keys keys) {
  const int64_t i = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x, t = blockIdx.x;
  if (i >= keys_of(keys, t)) return;
  const int64_t key = keys.row(t, i) * x.dim;
  float score = 0;
  for (int64_t h = 0; h < x.heads; ++h) {
    const int64_t query = (t * x.heads + h) * x.dim;
    float dot = 0;
    for (int64_t d = 0; d < x.dim; ++d) dot += load(x.q, query + d) * load(x.k, key + d);
    score += x.weights[t * x.heads + h] * fmaxf(0.0f, x.scale * dot);
  }
  x.scores[t * x.most_keys + i] = score;
}

// Bits whose order as integers is that of the numbers.
__device__ inline uint32_t ordered_bits(float value) {
  const uint32_t bits = as_bits(value);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

// A token's scores, as its warp goes over them.
struct WarpScores {
  const float* scores;
  int64_t count;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ uint32_t at(int64_t i) const { return ordered_bits(scores[i]); }
  __device__ int64_t at_least(uint32_t bound) const {
    int found = 0;
    for (int64_t i = lane(); i < count; i += kWarp) found += at(i) >= bound ? 1 : 0;
    return warp_sum(found);
  }
  // The n-th largest; 0 where there are not more than n.
  __device__ uint32_t nth_largest(int64_t n) const {
    uint32_t bound = 0;
    for (int bit = 31; count > n && bit >= 0; --bit) {
      const uint32_t higher = bound | 1u << bit;
      if (at_least(higher) >= n) bound = higher;
    }
    return bound;
  }
};

template <typename Keys>
__global__ void choose_keys(Index x, Keys keys, int32_t* out) {
  const int64_t t = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (t >= x.tokens) return;
  const WarpScores scores{x.scores + t * x.most_keys, keys_of(keys, t)};
  const uint32_t bound = scores.nth_largest(x.n);
  const int64_t above = bound == 0 ? 0 : scores.at_least(bound + 1);
  const int64_t ties = x.n - above;  // that are chosen, the lowest first
  const int lane = WarpScores::lane();
  const uint32_t before_me = (1u << lane) - 1;
  int64_t written = 0, equal_seen = 0;
  for (int64_t first = 0; first < scores.count; first += kWarp) {
    const int64_t i = first + lane;
    const uint32_t bits = i < scores.count ? scores.at(i) : 0;
    const bool equal = i < scores.count && (bound == 0 || bits == bound);
    const uint32_t equals = lanes_where(equal);
    const bool tie_taken = equal && equal_seen + count_bits(equals & before_me) < ties;
    const bool taken = tie_taken || (i < scores.count && bound != 0 && bits > bound);
    const uint32_t takers = lanes_where(taken);
    if (taken) {
      out[t * x.n + written + count_bits(takers & before_me)] = static_cast<int32_t>(keys.first_id(t) + i);
    }
    written += count_bits(takers);
    equal_seen += count_bits(equals);
  }
  for (int64_t i = written + lane; i < x.n; i += kWarp) out[t * x.n + i] = -1;
}

// Ids are rows of the pack, or positions of a stream.
struct PackedChoices : PackedKeys {
  __device__ int64_t first_id(int64_t t) const { return sequence_begin[t]; }
};
struct PagedChoices : PagedKeys {
  __device__ int64_t first_id(int64_t) const { return 0; }
};

// Keys that a token can have: of the pack, or of a stream's pages.
int64_t most_keys(const OpSite& site) {
  return site.inputs.size() == 4 ? site.inputs[1].shape[0]
                                 : site.inputs[3].shape[1] * site.inputs[1].shape[1];
}

template <typename Keys>
void launch_choice(const KernelCall& call, const Keys& keys, int64_t most) {
  const Shape& q = call.inputs[0].type.shape;
  const Index x{.q = input(call, 0),
                .k = input(call, 1),
                .weights = input_as<float>(call, 2),
                .scores = reinterpret_cast<float*>(call.workspace.data()),
                .tokens = q[0],
                .heads = q[1],
                .dim = q[2],
                .most_keys = most,
                .n = call.attrs->integer("n"),
                .scale = static_cast<float>(call.attrs->real("scale"))};
  launch(call, score_keys<Keys>, dim3(static_cast<unsigned>(q[0]), blocks_for(most, kScoreThreads)),
         kScoreThreads, 0, x, keys);
  launch(call, choose_keys<Keys>, blocks_for(q[0], kWarpsPerBlock), kWarpsPerBlock * kWarp, 0, x, keys,
         output_as<int32_t>(call, 0));
}

void run(const KernelCall& call) {
  launch_choice(call, PackedChoices{{input_as<int32_t>(call, 3)}}, call.inputs[1].type.shape[0]);
}

void run_paged(const KernelCall& call) {
  const Shape &k = call.inputs[1].type.shape, &table = call.inputs[3].type.shape;
  const PagedChoices keys{{input_as<int32_t>(call, 3), input_as<int32_t>(call, 4), input_as<int32_t>(call, 5),
                           table[1], k[1], k[0]}};
  launch_choice(call, keys, table[1] * k[1]);
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  return site.inputs[0].shape[0] * most_keys(site) * static_cast<int64_t>(sizeof(float));
}

constexpr KernelDef kKernels[] = {
    {.op = "index_top_k",
     .name = "index_top_k_warps",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run},
    {.op = "index_top_k_paged",
     .name = "index_top_k_paged_warps",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run_paged},
};

}  // namespace

std::span<const KernelDef> index_top_k_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
