// d weight: rows [first, first + count) of it are the transposed gradient of the logits times the hidden
// rows, summed over chunks of rows in order.
#include <cstring>

#include "backend/cpu/cross_entropy.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

void add_product(const CrossEntropy& ce, int64_t begin, int64_t rows, int64_t first, int64_t count) {
  Gemm g;
  g.m = count;
  g.n = ce.hidden_size;
  g.k = rows;
  g.a = {reinterpret_cast<std::byte*>(ce.logits), DType::f32, count, true};
  g.b = {ce.gathered, ce.call.inputs[0].type.dtype, ce.hidden_size};
  g.out = reinterpret_cast<std::byte*>(output_as<float>(ce.call, 0) + first * ce.hidden_size);
  g.out_stride = ce.hidden_size;
  if (begin > 0) g.addend = {g.out, DType::f32, ce.hidden_size};
  gemm(g, ce.gemm_workspace, *ce.call.threads);
}

void run(const KernelCall& call) {
  CrossEntropy ce(call);
  const TensorView& out = call.outputs[0];
  if (ce.trained == 0) std::memset(out.data, 0, static_cast<size_t>(out.type.bytes()));
  for (int64_t begin = 0; begin < ce.trained; begin += kChunkRows) {
    const int64_t rows = std::min(kChunkRows, ce.trained - begin);
    ce.gather(begin, begin + rows);
    for (int64_t first = 0; first < ce.vocab; first += kChunkVocab) {
      const int64_t count = std::min(kChunkVocab, ce.vocab - first);
      ce.compute_logit_gradients(begin, rows, first, first + count);
      add_product(ce, begin, rows, first, count);
    }
  }
}

}  // namespace

const KernelDef& linear_cross_entropy_grad_weight_chunked_kernel() {
  static constexpr KernelDef def{
      .op = "linear_cross_entropy_grad_weight",
      .name = "linear_cross_entropy_grad_weight_chunked",
      .serves = [](const OpSite& site,
                   const DeviceFacts& facts) { return serves_cross_entropy(site, facts); },
      .workspace_bytes =
          [](const OpSite& site, const DeviceFacts& facts) {
            return cross_entropy_workspace_bytes(site, facts, 0);
          },
      .run = run};
  return def;
}

}  // namespace tenon
