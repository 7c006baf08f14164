// index_top_k and entry_top_k, packed and paged: a thread for the score of each token and key, then a warp
// for each token, which chooses the ids of the largest scores in rising order.
#include "backend/cuda/attention_keys.h"
#include "backend/cuda/choose.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"

namespace tenon::cuda {
namespace {

constexpr unsigned kScoreThreads = 128;

struct Index {
  Tensor q, k;
  const float* weights;
  float* scores;  // [tokens, most_keys], workspace
  int64_t tokens, heads, dim, most_keys, n;
  int64_t stride;  // there is a key to choose at the last of every so many positions
  float scale;

  template <typename Keys>
  __device__ int64_t keys_of(const Keys& keys, int64_t t) const {
    return keys.has(t) ? (keys.position(t) + 1) / stride : 0;
  }
  __device__ int64_t position(int64_t i) const { return (i + 1) * stride - 1; }
};

template <typename Keys>
__global__ void score_keys(Index x, Keys keys) {
  const int64_t i = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x, t = blockIdx.x;
  if (i >= x.keys_of(keys, t)) return;
  const int64_t key = keys.row(t, x.position(i)) * x.dim;
  float score = 0;
  for (int64_t h = 0; h < x.heads; ++h) {
    const int64_t query = (t * x.heads + h) * x.dim;
    float dot = 0;
    for (int64_t d = 0; d < x.dim; ++d) dot += load(x.q, query + d) * load(x.k, key + d);
    score += x.weights[t * x.heads + h] * fmaxf(0.0f, x.scale * dot);
  }
  x.scores[t * x.most_keys + i] = score;
}

template <typename Keys>
__global__ void choose_keys(Index x, Keys keys, int32_t* out) {
  const int64_t t = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (t >= x.tokens) return;
  const WarpScores scores{x.scores + t * x.most_keys, x.keys_of(keys, t)};
  int32_t* const ids = out + t * x.n;
  const int64_t written = choose_largest(scores, x.n, [&](int64_t rank, int64_t i) {
    ids[rank] = static_cast<int32_t>(keys.first_id(t) + x.position(i));
  });
  for (int64_t i = written + WarpScores::lane(); i < x.n; i += kWarp) ids[i] = -1;
}

int64_t stride_of(const Attrs& attrs) {
  return attrs.has("stride") ? attrs.integer("stride") : 1;
}

// Keys that a token can choose from: of the pack, or of a stream's pages.
int64_t most_keys(int64_t positions, const Attrs& attrs) {
  return std::max<int64_t>(1, positions / stride_of(attrs));
}

template <typename Keys>
void launch_choice(const KernelCall& call, const Keys& keys, int64_t positions) {
  const int64_t most = most_keys(positions, *call.attrs);
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
                .stride = stride_of(*call.attrs),
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
  const PagedChoices keys{paged_keys(call, 3)};
  launch_choice(call, keys, keys.max_pages * keys.page_tokens);
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  const Shape& k = site.inputs[1].shape;
  const int64_t positions = site.inputs.size() == 4 ? k[0] : site.inputs[3].shape[1] * k[1];
  return site.inputs[0].shape[0] * most_keys(positions, site.attrs) * static_cast<int64_t>(sizeof(float));
}

constexpr KernelDef kKernels[] = {
    {.op = "entry_top_k",
     .name = "entry_top_k_warps",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run},
    {.op = "entry_top_k_paged",
     .name = "entry_top_k_paged_warps",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run_paged},
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
