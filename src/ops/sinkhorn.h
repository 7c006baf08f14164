// Makes matrices nearly doubly stochastic (Sinkhorn and Knopp 1967): of x f32 [rows, n, n], each row becomes
// its softmax plus eps and columns are divided by their sums plus eps; then `iterations` - 1 times rows and
// columns in turn are divided so. sinkhorn_grad: x and dout to dx, through every step.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& sinkhorn_op();
const OpDef& sinkhorn_grad_op();

struct SinkhornOptions {
  int64_t iterations = 1;
  double eps = 0;
};
ValueId sinkhorn(Builder& builder, ValueId x, const SinkhornOptions& options);
ValueId sinkhorn_grad(Builder& builder, ValueId x, ValueId dout, const SinkhornOptions& options);

}  // namespace tenon
