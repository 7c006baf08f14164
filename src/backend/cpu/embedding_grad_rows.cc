// embedding_grad: each thread owns a range of the vocabulary and takes its tokens in order.
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/sum_rows.h"
#include "base/check.h"

namespace tenon {
namespace {

void run(const KernelCall& call) {
  const TensorView& dy = call.inputs[0];
  const int64_t tokens = dy.type.shape[0], vocab = call.outputs[0].type.shape[0];
  const int32_t* ids = input_as<int32_t>(call, 1);
  float* out = output_as<float>(call, 0);
  for (int64_t t = 0; t < tokens; ++t) CHECK(ids[t] >= 0 && ids[t] < vocab, "an id is outside the table");
  call.threads->parallel_for(vocab, 64, [&](Range range) { sum_rows_by_id(dy, ids, range, out); });
}

}  // namespace

const KernelDef& embedding_grad_rows_kernel() {
  static constexpr KernelDef def{
      .op = "embedding_grad", .name = "embedding_grad_rows", .serves = serves_vector_dtypes, .run = run};
  return def;
}

}  // namespace tenon
