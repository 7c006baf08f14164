#include "ops/linear_cross_entropy_grad_weight.h"

#include <algorithm>

#include "ops/linear_cross_entropy_rules.h"

namespace tenon {
namespace {

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_linear_cross_entropy_grad(site));
  return std::vector<Type>{Type{DType::f32, site.inputs[1].shape}};
}

void reference(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0];
  const int64_t vocab = call.inputs[1].type.shape[0], size = call.inputs[1].type.shape[1];
  std::fill_n(call.outputs[0].data, vocab * size, 0.0);
  std::vector<double> dz;
  for (int64_t t = 0; t < tokens; ++t) {
    if (!logits_grad_row(call, t, dz)) continue;
    for (int64_t v = 0; v < vocab; ++v) {
      for (int64_t i = 0; i < size; ++i) {
        call.outputs[0].data[v * size + i] += dz[v] * call.inputs[0].data[t * size + i];
      }
    }
  }
}

}  // namespace

const OpDef& linear_cross_entropy_grad_weight_op() {
  static constexpr OpDef def{.name = "linear_cross_entropy_grad_weight",
                             .infer = infer,
                             .cost = linear_cross_entropy_grad_cost,
                             .reference = reference};
  return def;
}

ValueId linear_cross_entropy_grad_weight(Builder& builder, ValueId hidden, ValueId weight, ValueId labels,
                                         ValueId lse, ValueId dloss,
                                         const LinearCrossEntropyOptions& options) {
  return builder.emit_one(linear_cross_entropy_grad_weight_op(), {hidden, weight, labels, lse, dloss},
                          linear_cross_entropy_attrs(options));
}

}  // namespace tenon
