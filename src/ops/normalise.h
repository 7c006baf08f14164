// Rows of x [..., n] made comparable, without weights. Kinds: rms, x / sqrt(mean(x^2) + eps); layer, (x -
// mean(x)) / sqrt(var(x) + eps) (Ba et al. 2016); l2, x / sqrt(sum(x^2) + eps); sum, x / (sum(x) + eps);
// softmax (eps unused). Computed in f32 or better, rounded once to x's dtype. normalise_grad is the gradient
// with respect to x.
#pragma once

#include "ir/builder.h"

namespace tenon {

enum class NormaliseKind : uint8_t { rms, layer, l2, sum, softmax };

const OpDef& normalise_op();
const OpDef& normalise_grad_op();
ValueId normalise(Builder& builder, ValueId x, NormaliseKind kind, double eps = 0);
ValueId normalise_grad(Builder& builder, ValueId x, ValueId dy, NormaliseKind kind, double eps);

}  // namespace tenon
