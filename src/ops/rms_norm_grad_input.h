// Gradient of rms_norm with respect to x: r = 1/sqrt(mean(x^2) + eps), g = dy * (w + weight_offset),
// dx = r * (g - x * r^2 * mean(g * x)).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& rms_norm_grad_input_op();
ValueId rms_norm_grad_input(Builder& builder, ValueId x, ValueId weight, ValueId dy, double eps,
                            double weight_offset);

}  // namespace tenon
