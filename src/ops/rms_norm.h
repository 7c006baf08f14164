// RMSNorm over the innermost axis (Zhang and Sennrich 2019): y = x / sqrt(mean(x^2) + eps) * (w +
// weight_offset). x [..., n] f32 or bf16, w [n]; the mean and the product are in f32, rounded once to x's
// dtype. weight_offset is 1 for zero-centred weights.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& rms_norm_op();
ValueId rms_norm(Builder& builder, ValueId x, ValueId weight, double eps, double weight_offset = 0.0);

}  // namespace tenon
