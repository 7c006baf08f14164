// matmul of one row by a transposed matrix in bf16, as decoding one stream does it: a warp for each element
// of the output, whose row of b streams past with several loads on their way.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

constexpr int kAhead = 8;  // loads of a lane that are on their way together

__device__ inline float dot_of_words(const Words& a, const Words& b, float total) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    total += as_float(a.word[e] << 16) * as_float(b.word[e] << 16);
    total += as_float(a.word[e] & 0xffff0000u) * as_float(b.word[e] & 0xffff0000u);
  }
  return total;
}

struct RowProduct {
  const Words *a, *b;
  Tensor addend, out;  // addend: no data where there is none
  int64_t n, k;
  float alpha;
};

// The bounds leave the compiler registers for all loads; without, it takes them one after the other.
__global__ void __launch_bounds__(kThreads, 2) multiply_row(RowProduct p) {
  const int64_t column = thread_in_grid() / kWarp;
  if (column >= p.n) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Words* const b = p.b + column * (p.k / kVector);
  float total = 0;
  int64_t at = lane;  // in words
  for (; at + (kAhead - 1) * kWarp < p.k / kVector; at += kAhead * kWarp) {
    Words left[kAhead], right[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) right[i] = b[at + i * kWarp];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) left[i] = p.a[at + i * kWarp];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) total = dot_of_words(left[i], right[i], total);
  }
  for (; at < p.k / kVector; at += kWarp) total = dot_of_words(p.a[at], b[at], total);
  total = p.alpha * warp_sum(total);
  if (lane != 0) return;
  if (p.addend.data != nullptr) total += load(p.addend, column);
  store(p.out, column, total);
}

bool serves_row(const OpSite& site, const DeviceFacts& facts) {
  const Type &a = site.inputs[0], &b = site.inputs[1];
  const bool layout = !site.attrs.flag("trans_a") && site.attrs.flag("trans_b");
  return facts.kind == DeviceKind::cuda && layout && a.dtype == DType::bf16 && b.dtype == DType::bf16 &&
         a.shape[0] == 1 && a.shape[1] % kVector == 0 && all_plain(site.inputs) && all_plain(site.outputs);
}

void run(const KernelCall& call) {
  const RowProduct p{.a = input_as<Words>(call, 0),
                     .b = input_as<Words>(call, 1),
                     .addend = call.inputs.size() == 3 ? input(call, 2) : Tensor{},
                     .out = output(call, 0),
                     .n = call.outputs[0].type.shape[1],
                     .k = call.inputs[0].type.shape[1],
                     .alpha = static_cast<float>(call.attrs->real("alpha"))};
  launch(call, multiply_row, blocks_for(p.n, kThreads / kWarp), kThreads, 0, p);
}

constexpr KernelDef kKernels[] = {
    {.op = "matmul",
     .name = "matmul_row_warps",
     .serves = serves_row,
     .cost = [](const OpSite&, const DeviceFacts&) { return 0.5; },
     .run = run},
};

}  // namespace

std::span<const KernelDef> row_matmul_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
