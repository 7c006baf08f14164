// top_k, near_best with its gradient, limit_ids. A thread a row, choosing one index at a time.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

constexpr int kMostColumns = 1024;

struct Choice {
  int64_t columns, k, groups, group_limit, group_sum;
};

// Indices already taken, one bit each.
struct Taken {
  uint32_t words[kMostColumns / 32];
  __device__ void clear() {
    for (uint32_t& word : words) word = 0;
  }
  __device__ bool has(int64_t i) const { return words[i / 32] >> (i % 32) & 1; }
  __device__ void add(int64_t i) { words[i / 32] |= 1u << (i % 32); }
};

// The largest of [begin, end) that is neither taken nor in a group that is not kept; the lowest of equal
// ones.
__device__ int64_t best_of(const Tensor& x, int64_t row, const Choice& c, int64_t begin, int64_t end,
                           const Taken& taken, const Taken* kept) {
  int64_t best = -1;
  float largest = 0;
  for (int64_t i = begin; i < end; ++i) {
    if (taken.has(i) || (kept != nullptr && !kept->has(i / (c.columns / c.groups)))) continue;
    const float value = load(x, row * c.columns + i);
    if (best < 0 || value > largest) {
      best = i;
      largest = value;
    }
  }
  return best;
}

__device__ float group_score(const Tensor& x, int64_t row, const Choice& c, int64_t group, Taken& taken) {
  const int64_t width = c.columns / c.groups;
  taken.clear();
  float score = 0;
  for (int64_t n = 0; n < c.group_sum && n < width; ++n) {
    const int64_t best = best_of(x, row, c, group * width, (group + 1) * width, taken, nullptr);
    taken.add(best);
    score += load(x, row * c.columns + best);
  }
  return score;
}

__device__ void keep_groups(const Tensor& x, int64_t row, const Choice& c, Taken& taken, Taken& kept) {
  kept.clear();
  for (int64_t n = 0; n < c.group_limit; ++n) {
    int64_t best = -1;
    float largest = 0;
    for (int64_t group = 0; group < c.groups; ++group) {
      if (kept.has(group)) continue;
      const float score = group_score(x, row, c, group, taken);
      if (best < 0 || score > largest) {
        best = group;
        largest = score;
      }
    }
    kept.add(best);
  }
}

__global__ void top_k(Tensor x, int32_t* out, Choice c, int64_t rows) {
  const int64_t row = thread_in_grid();
  if (row >= rows) return;
  Taken taken, kept;
  const bool limited = c.group_limit < c.groups;
  if (limited) keep_groups(x, row, c, taken, kept);
  taken.clear();
  for (int64_t i = 0; i < c.k; ++i) {
    const int64_t best = best_of(x, row, c, 0, c.columns, taken, limited ? &kept : nullptr);
    taken.add(best);
    out[row * c.k + i] = static_cast<int32_t>(best);
  }
}

void run(const KernelCall& call) {
  const Attrs& a = *call.attrs;
  const Shape& x = call.inputs[0].type.shape;
  const Choice c{x[1], a.integer("k"), a.integer("groups"), a.integer("group_limit"), a.integer("group_sum")};
  launch(call, top_k, blocks_for(x[0], 64), 64, 0, input(call, 0), output_as<int32_t>(call, 0), c, x[0]);
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return serves_plain(site, facts) && site.inputs[0].shape[1] <= kMostColumns;
}

// The rule of ops/routing.h; `from` is x, or dy for the gradient.
__global__ void near_best(Tensor x, const int32_t* ids, Tensor from, Tensor out, int64_t columns,
                          int64_t ids_width, int64_t excluded, float slack, float hidden, int64_t rows) {
  const int64_t row = thread_in_grid();
  if (row >= rows) return;
  Taken taken;
  taken.clear();
  for (int64_t i = 0; i < excluded; ++i) taken.add(ids[row * ids_width + i]);
  float best = -INFINITY;
  for (int64_t c = 0; c < columns; ++c) {
    if (!taken.has(c)) best = fmaxf(best, load(x, row * columns + c));
  }
  for (int64_t c = 0; c < columns; ++c) {
    const float value = load(x, row * columns + c);
    const bool kept = !taken.has(c) && (best - value) / fmaxf(fabsf(value), best) <= slack;
    store(out, row * columns + c, kept ? load(from, row * columns + c) : hidden);
  }
}

void run_near(const KernelCall& call, size_t from, float hidden) {
  const Attrs& a = *call.attrs;
  const Shape& x = call.inputs[0].type.shape;
  launch(call, near_best, blocks_for(x[0], 64), 64, 0, input(call, 0), input_as<int32_t>(call, 1),
         input(call, from), output(call, 0), x[1], call.inputs[1].type.shape[1], a.integer("excluded"),
         static_cast<float>(a.real("slack")), hidden, x[0]);
}

__global__ void limit_ids(const int32_t* ids, int32_t* out, int64_t limit, int32_t otherwise, int64_t count) {
  const int64_t i = thread_in_grid();
  if (i < count) out[i] = ids[i] < limit ? ids[i] : otherwise;
}

void run_limit(const KernelCall& call) {
  const int64_t count = call.outputs[0].type.elements();
  launch(call, limit_ids, blocks_for(count), kThreads, 0, input_as<int32_t>(call, 0),
         output_as<int32_t>(call, 0), call.attrs->integer("limit"),
         static_cast<int32_t>(call.attrs->integer("otherwise")), count);
}

constexpr KernelDef kKernels[] = {
    {.op = "limit_ids", .name = "limit_ids", .serves = serves_plain, .run = run_limit},
    {.op = "near_best",
     .name = "near_best",
     .serves = serves,
     .run = [](const KernelCall& call) { run_near(call, 0, -INFINITY); }},
    {.op = "near_best_grad",
     .name = "near_best_grad",
     .serves = serves,
     .run = [](const KernelCall& call) { run_near(call, 2, 0.0f); }},
    {.op = "top_k", .name = "top_k", .serves = serves, .run = run}};

}  // namespace

std::span<const KernelDef> routing_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
