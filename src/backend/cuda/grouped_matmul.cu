// grouped_matmul and its weight gradient: plain kernels whose cost follows the rows.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/quantised.h"

namespace tenon::cuda {
namespace {

struct Grouped {
  Tensor x, w, addend, out;
  const int32_t* group;
  int64_t groups, n, depth;
  bool trans_b;
  float alpha;
};

// A warp an output element: the lanes share the sum.
__global__ void grouped_matmul(Grouped g, int64_t items) {
  const int64_t item = thread_in_grid() / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (item >= items) return;
  const int64_t row = item / g.n, column = item % g.n, group = g.group[row];
  if (group >= g.groups) stop();
  const int64_t w = group * g.n * g.depth;
  float total = 0;
  for (int64_t i = lane; group >= 0 && i < g.depth; i += kWarp) {
    total += load(g.x, row * g.depth + i) *
             load_number(g.w, w + (g.trans_b ? column * g.depth + i : i * g.n + column));
  }
  total = warp_sum(total) * g.alpha;
  if (g.addend.data != nullptr) total += load(g.addend, item);
  if (lane == 0) store(g.out, item, total);
}

void run(const KernelCall& call) {
  const Shape &x = call.inputs[0].type.shape, &w = call.inputs[1].type.shape;
  const int64_t n = call.outputs[0].type.shape[1], items = call.outputs[0].type.elements();
  const Grouped g{.x = input(call, 0),
                  .w = input(call, 1),
                  .addend = call.inputs.size() == 4 ? input(call, 3) : Tensor{},
                  .out = output(call, 0),
                  .group = input_as<int32_t>(call, 2),
                  .groups = w[0],
                  .n = n,
                  .depth = x[1],
                  .trans_b = call.attrs->flag("trans_b"),
                  .alpha = static_cast<float>(call.attrs->real("alpha"))};
  launch(call, grouped_matmul, blocks_for(items, kThreads / kWarp), kThreads, 0, g, items);
}

// A thread an element: the rows of its group, in order.
__global__ void grouped_matmul_grad_weight(Tensor a, Tensor b, const int32_t* group, float* out, int64_t rows,
                                           int64_t m, int64_t n, float alpha, int64_t items) {
  const int64_t item = thread_in_grid();
  if (item >= items) return;
  const int64_t column = item % n, row = item / n % m, matrix = item / (m * n);
  float total = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (group[r] == matrix) total += load(a, r * m + row) * load(b, r * n + column);
  }
  out[item] = alpha * total;
}

void run_grad_weight(const KernelCall& call) {
  const Shape &a = call.inputs[0].type.shape, &b = call.inputs[1].type.shape;
  const int64_t items = call.outputs[0].type.elements();
  launch(call, grouped_matmul_grad_weight, blocks_for(items), kThreads, 0, input(call, 0), input(call, 1),
         input_as<int32_t>(call, 2), output_as<float>(call, 0), a[0], a[1], b[1],
         static_cast<float>(call.attrs->real("alpha")), items);
}

constexpr KernelDef kKernels[] = {
    {.op = "grouped_matmul", .name = "grouped_matmul", .serves = serves_number<1>, .run = run},
    {.op = "grouped_matmul_grad_weight",
     .name = "grouped_matmul_grad_weight",
     .serves = serves_plain,
     .run = run_grad_weight},
};

}  // namespace

std::span<const KernelDef> grouped_matmul_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
