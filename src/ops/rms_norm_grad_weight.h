// Gradient of rms_norm with respect to its weight, f32 [n]: sum over rows of dy * x / sqrt(mean(x^2) + eps).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& rms_norm_grad_weight_op();
ValueId rms_norm_grad_weight(Builder& builder, ValueId x, ValueId dy, double eps);

}  // namespace tenon
