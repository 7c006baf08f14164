#include "ops/linear_cross_entropy.h"

#include "ops/linear_cross_entropy_grad_hidden.h"
#include "ops/linear_cross_entropy_grad_weight.h"
#include "ops/linear_cross_entropy_rules.h"

namespace tenon {
namespace {

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_linear_cross_entropy(site));
  const Shape tokens{site.inputs[0].shape[0]};
  return std::vector<Type>{Type{DType::f32, tokens}, Type{DType::f32, tokens}, Type{DType::i32, tokens}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  CHECK(!site.output_gradients[1].valid() && !site.output_gradients[2].valid(),
        "only the loss of linear_cross_entropy has a gradient rule");
  const ValueId dloss = site.output_gradients[0];
  std::vector<ValueId> gradients(3);
  if (!dloss.valid()) return gradients;
  const auto options = linear_cross_entropy_options(site.op.attrs);
  const ValueId hidden = site.op.inputs[0], weight = site.op.inputs[1], labels = site.op.inputs[2];
  const ValueId lse = site.op.outputs[1];
  if (site.needed[0]) {
    gradients[0] =
        linear_cross_entropy_grad_hidden(site.builder, hidden, weight, labels, lse, dloss, options);
  }
  if (site.needed[1]) {
    gradients[1] =
        linear_cross_entropy_grad_weight(site.builder, hidden, weight, labels, lse, dloss, options);
  }
  return gradients;
}

Cost cost(const OpSite& site) {
  const Shape& hidden = site.inputs[0].shape;
  Cost cost = streaming_cost(site, 0);
  cost.flops = 2 * hidden[0] * hidden[1] * site.inputs[1].shape[0];
  return cost;
}

void reference(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0];
  std::vector<double> logits;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto label = static_cast<int64_t>(call.inputs[2].data[t]);
    call.outputs[0].data[t] = 0;
    call.outputs[1].data[t] = 0;
    call.outputs[2].data[t] = -1;
    if (label < 0) continue;
    const TokenLoss of_token = token_loss(call, t, label, logits);
    call.outputs[0].data[t] = of_token.loss;
    call.outputs[1].data[t] = of_token.lse;
    call.outputs[2].data[t] = of_token.predicted;
  }
}

}  // namespace

const OpDef& linear_cross_entropy_op() {
  static constexpr OpDef def{.name = "linear_cross_entropy",
                             .infer = infer,
                             .gradient = gradient,
                             .cost = cost,
                             .reference = reference};
  return def;
}

LinearCrossEntropyOutputs linear_cross_entropy(Builder& builder, ValueId hidden, ValueId weight,
                                               ValueId labels, const LinearCrossEntropyOptions& options) {
  const auto outputs =
      builder.emit(linear_cross_entropy_op(), {hidden, weight, labels}, linear_cross_entropy_attrs(options));
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace tenon
