// A product and a low-rank one added to it: out[M, N] = a · b + alpha * low · up (+ addend), accumulated in
// f32, rounded once to `out_dtype`: a linear layer with its LoRA branch, or its gradient with respect to the
// input. a is [M, K], low [M, R]; b is [K, N] and up [R, N], or with trans_b [N, K] and [N, R]. Dtypes and
// addend as of matmul. A pass puts it in the place of two products.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& matmul_low_rank_op();

struct MatmulLowRankInputs {
  ValueId a, b, low, up;
  ValueId addend = {};  // invalid: none
};
struct MatmulLowRankOptions {
  bool trans_b = false;
  double alpha = 1.0;
  DType out_dtype = DType::f32;
};
ValueId matmul_low_rank(Builder& builder, const MatmulLowRankInputs& inputs,
                        const MatmulLowRankOptions& options);

}  // namespace tenon
