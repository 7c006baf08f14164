// One of several matrices for each row: out[r] = x[r] · w[group[r]]^T, or · w[group[r]] where not trans_b,
// times alpha, plus addend[r] where there is one; a row whose group is -1 has no product. x [rows, K], w
// [groups, N, K] (trans_b) or [groups, K, N], group [rows] i32, addend of the output's type; out [rows, N] in
// x's dtype. Cost follows the rows, not the groups. grouped_matmul_grad_weight: a [rows, M], b [rows, N],
// group [rows] to f32 [groups, M, N], the sums of a^T · b over each group's rows, times alpha.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& grouped_matmul_op();
const OpDef& grouped_matmul_grad_weight_op();

struct GroupedMatmulOptions {
  bool trans_b = true;
  double alpha = 1.0;
  ValueId addend = {};
};
ValueId grouped_matmul(Builder& builder, ValueId x, ValueId w, ValueId group,
                       const GroupedMatmulOptions& options = {});
ValueId grouped_matmul_grad_weight(Builder& builder, ValueId a, ValueId b, ValueId group, int64_t groups,
                                   double alpha = 1.0);

}  // namespace tenon
