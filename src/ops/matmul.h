// Matrix product: out[M, N] = alpha * a · b (+ addend), accumulated in f32, rounded once to `out_dtype`.
// a is [M, K] ([K, M] with trans_a), b is [K, N] ([N, K] with trans_b: the layout of linear layers' weights).
// The product is computed in a's dtype: b may be stored in any dtype and is read as a's; values of
// block-quantised ones may stay as exact as they are.
// addend is [M, N] or a row [N]; it is added in f32 before the rounding. Where it is [M, N] in the output's
// dtype the output may take its place. Gradients come in the dtypes of their inputs, f32 for a
// block-quantised b.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& matmul_op();

struct MatmulOptions {
  bool trans_a = false;
  bool trans_b = false;
  double alpha = 1.0;
  DType out_dtype = DType::f32;
  ValueId addend = {};  // invalid: none
};
ValueId matmul(Builder& builder, ValueId a, ValueId b, const MatmulOptions& options);

// y[T, N] = x[T, K] · w[N, K]^T (+ addend), in x's dtype: a linear layer as checkpoints store it.
ValueId linear(Builder& builder, ValueId x, ValueId w, ValueId addend = {});

}  // namespace tenon
