// Gradients of attention with respect to q, k and v, scores recomputed from lse (Dao et al. 2022, algorithm
// 4). Inputs q, k, v, sequence_begin, out, lse, dout; outputs dq, dk, dv in the dtypes of q, k, v. Same
// attributes.
#pragma once

#include <array>

#include "ir/builder.h"
#include "ops/attention.h"

namespace tenon {

const OpDef& attention_grad_op();

struct AttentionGradInputs {
  ValueId q, k, v, sequence_begin, out, lse, dout;
};
// dq, dk, dv.
std::array<ValueId, 3> attention_grad(Builder& builder, const AttentionGradInputs& inputs,
                                      const AttentionOptions& options);

}  // namespace tenon
