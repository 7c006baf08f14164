// Weighted sums of the rows of each token: out[t, i] = sum over j of weights[t, i, j] * x[t, j]. x [tokens,
// n, width], weights f32 [tokens, m, n]; out [tokens, m, width] in x's dtype. With `trans` weights are
// [tokens, n, m] and taken as weights[t, j, i]. mix_rows_grad_weights: dout [tokens, m, width] and x to f32
// [tokens, m, n], the products of their rows.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& mix_rows_op();
const OpDef& mix_rows_grad_weights_op();

ValueId mix_rows(Builder& builder, ValueId x, ValueId weights, bool trans = false);
ValueId mix_rows_grad_weights(Builder& builder, ValueId dout, ValueId x);

}  // namespace tenon
