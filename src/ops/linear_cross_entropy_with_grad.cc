#include "ops/linear_cross_entropy_with_grad.h"

#include <algorithm>

#include "ops/linear_cross_entropy_grad_hidden.h"
#include "ops/linear_cross_entropy_rules.h"

namespace tenon {
namespace {

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_linear_cross_entropy_with_grad(site));
  const Shape tokens{site.inputs[0].shape[0]};
  return std::vector<Type>{site.inputs[0], Type{DType::f32, tokens}, Type{DType::i32, tokens}};
}

std::vector<ValueId> expand(Builder& builder, std::span<const ValueId> inputs, const Attrs& attrs) {
  const auto options = linear_cross_entropy_options(attrs);
  const auto out = linear_cross_entropy(builder, inputs[0], inputs[1], inputs[2], options);
  return {
      linear_cross_entropy_grad_hidden(builder, inputs[0], inputs[1], inputs[2], out.lse, inputs[3], options),
      out.loss, out.predicted};
}

void reference(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0];
  const int64_t vocab = call.inputs[1].type.shape[0], size = call.inputs[1].type.shape[1];
  std::fill_n(call.outputs[0].data, tokens * size, 0.0);
  std::vector<double> logits;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto label = static_cast<int64_t>(call.inputs[2].data[t]);
    call.outputs[1].data[t] = 0;
    call.outputs[2].data[t] = -1;
    if (label < 0) continue;
    const TokenLoss of_token = token_loss(call, t, label, logits);
    call.outputs[1].data[t] = of_token.loss;
    call.outputs[2].data[t] = of_token.predicted;
    logits_to_derivative(call.attrs, label, of_token.lse, call.inputs[3].data[t], logits);
    for (int64_t v = 0; v < vocab; ++v) {
      for (int64_t i = 0; i < size; ++i) {
        call.outputs[0].data[t * size + i] +=
            logits[static_cast<size_t>(v)] * call.inputs[1].data[v * size + i];
      }
    }
  }
}

}  // namespace

const OpDef& linear_cross_entropy_with_grad_op() {
  static constexpr OpDef def{.name = "linear_cross_entropy_with_grad",
                             .infer = infer,
                             .expand = expand,
                             .cost = linear_cross_entropy_grad_cost,
                             .reference = reference};
  return def;
}

LinearCrossEntropyWithGradOutputs linear_cross_entropy_with_grad(Builder& builder, ValueId hidden,
                                                                 ValueId weight, ValueId labels,
                                                                 ValueId dloss,
                                                                 const LinearCrossEntropyOptions& options) {
  const auto outputs = builder.emit(linear_cross_entropy_with_grad_op(), {hidden, weight, labels, dloss},
                                    linear_cross_entropy_attrs(options));
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace tenon
