// linear_cross_entropy and its gradient with respect to hidden in one: the logits are computed once, not
// twice. Inputs hidden, weight, labels and dloss [tokens] f32; outputs dhidden in hidden's dtype (zero rows
// where untrained), loss [tokens] f32 and predicted [tokens] i32, as the two ops give them. No gradient flows
// through: a pass puts it in place of the two.
#pragma once

#include "ops/linear_cross_entropy.h"

namespace tenon {

const OpDef& linear_cross_entropy_with_grad_op();

struct LinearCrossEntropyWithGradOutputs {
  ValueId dhidden, loss, predicted;
};
LinearCrossEntropyWithGradOutputs linear_cross_entropy_with_grad(Builder& builder, ValueId hidden,
                                                                 ValueId weight, ValueId labels,
                                                                 ValueId dloss,
                                                                 const LinearCrossEntropyOptions& options);

}  // namespace tenon
