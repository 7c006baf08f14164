// Gradient of linear_cross_entropy with respect to its weight, f32 [vocab, hidden]: dz^T · hidden.
#pragma once

#include "ir/builder.h"
#include "ops/linear_cross_entropy.h"

namespace tenon {

const OpDef& linear_cross_entropy_grad_weight_op();
ValueId linear_cross_entropy_grad_weight(Builder& builder, ValueId hidden, ValueId weight, ValueId labels,
                                         ValueId lse, ValueId dloss,
                                         const LinearCrossEntropyOptions& options);

}  // namespace tenon
