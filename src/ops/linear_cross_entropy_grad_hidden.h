// Gradient of linear_cross_entropy with respect to hidden: dz = dloss[t] * (softmax(z) - onehot(label)),
// through the soft cap and the scale, times weight; logits recomputed by chunks. dloss [tokens] f32. Zero
// rows where untrained.
#pragma once

#include "ir/builder.h"
#include "ops/linear_cross_entropy.h"

namespace tenon {

const OpDef& linear_cross_entropy_grad_hidden_op();
ValueId linear_cross_entropy_grad_hidden(Builder& builder, ValueId hidden, ValueId weight, ValueId labels,
                                         ValueId lse, ValueId dloss,
                                         const LinearCrossEntropyOptions& options);

}  // namespace tenon
