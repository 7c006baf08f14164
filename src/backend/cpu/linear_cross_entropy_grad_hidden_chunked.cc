// d hidden: each tile of logits is computed again, turned into its gradient in place and multiplied by its
// rows of the weight; the sums of a chunk of rows are kept in f32 until the vocabulary is through.
#include <cstring>

#include "backend/cpu/convert.h"
#include "backend/cpu/cross_entropy.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

// Adds the tile's part to the sums; the first tile of a chunk sets them.
void add_product(const CrossEntropy& ce, float* sums, int64_t rows, int64_t first, int64_t count) {
  Gemm g;
  g.m = rows;
  g.n = ce.hidden_size;
  g.k = count;
  g.a = {reinterpret_cast<std::byte*>(ce.logits), DType::f32, count};
  g.b = ce.weight_rows(first);
  g.out = reinterpret_cast<std::byte*>(sums);
  g.out_stride = ce.hidden_size;
  if (first > 0) g.addend = {g.out, DType::f32, ce.hidden_size};
  gemm(g, ce.gemm_workspace, *ce.call.threads);
}

void run(const KernelCall& call) {
  CrossEntropy ce(call);
  const TensorView& out = call.outputs[0];
  std::memset(out.data, 0, static_cast<size_t>(out.type.bytes()));
  float* sums = reinterpret_cast<float*>(ce.state);
  const int64_t row_bytes = *dtype_bytes(out.type.dtype, ce.hidden_size);
  for (int64_t begin = 0; begin < ce.trained; begin += kChunkRows) {
    const int64_t rows = std::min(kChunkRows, ce.trained - begin);
    ce.gather(begin, begin + rows);
    for (int64_t first = 0; first < ce.vocab; first += kChunkVocab) {
      const int64_t count = std::min(kChunkVocab, ce.vocab - first);
      ce.compute_logit_gradients(begin, rows, first, first + count);
      add_product(ce, sums, rows, first, count);
    }
    for (int64_t i = 0; i < rows; ++i) {
      round_from_f32(out.type.dtype, sums + i * ce.hidden_size, ce.hidden_size,
                     out.data + ce.rows[static_cast<size_t>(begin + i)] * row_bytes);
    }
  }
}

}  // namespace

const KernelDef& linear_cross_entropy_grad_hidden_chunked_kernel() {
  static constexpr KernelDef def{
      .op = "linear_cross_entropy_grad_hidden",
      .name = "linear_cross_entropy_grad_hidden_chunked",
      .serves = [](const OpSite& site,
                   const DeviceFacts& facts) { return serves_cross_entropy(site, facts); },
      .workspace_bytes =
          [](const OpSite& site, const DeviceFacts& facts) {
            return cross_entropy_workspace_bytes(site, facts, site.inputs[0].shape[1] * 4);
          },
      .run = run};
  return def;
}

}  // namespace tenon
