// block_top_k and block_top_k_paged: a thread for the score of each query and block, then a warp for each
// query, which writes the keys of the blocks with the largest scores in rising order.
#include "backend/cuda/attention_keys.h"
#include "backend/cuda/choose.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"

namespace tenon::cuda {
namespace {

constexpr unsigned kScoreThreads = 128;

struct Blocks {
  Tensor q, k;
  float* scores;  // [rows, most_blocks], workspace
  int64_t rows, groups, dim, most_blocks, n, block, local;
};

template <typename Keys>
__device__ int64_t seen_by(const Keys& keys, int64_t t) {
  return keys.has(t) ? keys.position(t) + 1 : 0;
}

template <typename Keys>
__global__ void score_blocks(Blocks x, Keys keys) {
  const int64_t b = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x, row = blockIdx.x;
  const int64_t t = row / x.groups, seen = seen_by(keys, t), blocks = ceil_div(seen, x.block);
  if (b >= blocks) return;
  float best = b >= blocks - x.local ? INFINITY : -INFINITY;
  const int64_t end = (b + 1) * x.block < seen ? (b + 1) * x.block : seen;
  for (int64_t i = b * x.block; best < INFINITY && i < end; ++i) {
    const int64_t key = keys.row(t, i) * x.dim;
    float dot = 0;
    for (int64_t d = 0; d < x.dim; ++d) dot += load(x.q, row * x.dim + d) * load(x.k, key + d);
    best = fmaxf(best, dot);
  }
  x.scores[row * x.most_blocks + b] = best;
}

// Only the last block that a token sees may be cut short, and it stands last among those chosen.
template <typename Keys>
__global__ void choose_blocks(Blocks x, Keys keys, int32_t* out) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (row >= x.rows) return;
  const int64_t t = row / x.groups, seen = seen_by(keys, t), width = x.n * x.block;
  int32_t* const ids = out + row * width;
  for (int64_t i = WarpScores::lane(); i < width; i += kWarp) ids[i] = -1;
  __syncwarp();
  const WarpScores scores{x.scores + row * x.most_blocks, ceil_div(seen, x.block)};
  choose_largest(scores, x.n, [&](int64_t rank, int64_t b) {
    for (int64_t i = 0; i < x.block && b * x.block + i < seen; ++i)
      ids[rank * x.block + i] = static_cast<int32_t>(keys.first_id(t) + b * x.block + i);
  });
}

int64_t most_blocks(int64_t positions, const Attrs& attrs) {
  return ceil_div(std::max<int64_t>(1, positions), attrs.integer("block"));
}

template <typename Keys>
void launch_choice(const KernelCall& call, const Keys& keys, int64_t positions) {
  const Shape& q = call.inputs[0].type.shape;
  const Blocks x{.q = input(call, 0),
                 .k = input(call, 1),
                 .scores = reinterpret_cast<float*>(call.workspace.data()),
                 .rows = q[0] * q[1],
                 .groups = q[1],
                 .dim = q[2],
                 .most_blocks = most_blocks(positions, *call.attrs),
                 .n = call.attrs->integer("n"),
                 .block = call.attrs->integer("block"),
                 .local = call.attrs->integer("local")};
  launch(call, score_blocks<Keys>,
         dim3(static_cast<unsigned>(x.rows), blocks_for(x.most_blocks, kScoreThreads)), kScoreThreads, 0, x,
         keys);
  launch(call, choose_blocks<Keys>, blocks_for(x.rows, kWarpsPerBlock), kWarpsPerBlock * kWarp, 0, x, keys,
         output_as<int32_t>(call, 0));
}

void run(const KernelCall& call) {
  launch_choice(call, PackedChoices{{input_as<int32_t>(call, 2)}}, call.inputs[1].type.shape[0]);
}

void run_paged(const KernelCall& call) {
  const PagedChoices keys{paged_keys(call, 2)};
  launch_choice(call, keys, keys.max_pages * keys.page_tokens);
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  const Shape &q = site.inputs[0].shape, &k = site.inputs[1].shape;
  const int64_t positions = site.inputs.size() == 3 ? k[0] : site.inputs[2].shape[1] * k[1];
  return q[0] * q[1] * most_blocks(positions, site.attrs) * static_cast<int64_t>(sizeof(float));
}

constexpr KernelDef kKernels[] = {
    {.op = "block_top_k",
     .name = "block_top_k_warps",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run},
    {.op = "block_top_k_paged",
     .name = "block_top_k_paged_warps",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run_paged},
};

}  // namespace

std::span<const KernelDef> block_top_k_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
