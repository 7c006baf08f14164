// Choosing experts. top_k: x [tokens, experts] to the indices [tokens, k] i32 of each row's k largest,
// largest first, the lower index first among equals. With groups > 1 only experts of the `group_limit` best
// of that many equal groups are chosen from; a group's score is its largest element, or the sum of its two
// largest (group_sum = 2). gather_columns: out[t, i] = x[t, ids[t, i]], with its gradient. limit_ids: the ids
// themselves below `limit`, `otherwise` for the others. lookup_ids: row ids[t] of a table f32 [rows, n] of
// whole numbers, as i32 [tokens, n].
//
// near_best (the mask of SparseMixer, Liu et al. 2023): x [tokens, experts], ids [tokens, n] i32; out = x
// where (best - x) / max(|x|, best) <= slack, minus infinity elsewhere; best is a row's largest element apart
// from the experts of its first `excluded` ids, which are masked too.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& top_k_op();
const OpDef& gather_columns_op();
const OpDef& gather_columns_grad_op();
const OpDef& limit_ids_op();
const OpDef& lookup_ids_op();
const OpDef& near_best_op();
const OpDef& near_best_grad_op();

struct TopKOptions {
  int64_t k = 1;
  int64_t groups = 1;
  int64_t group_limit = 1;
  int64_t group_sum = 1;
};
ValueId top_k(Builder& builder, ValueId x, const TopKOptions& options);
ValueId gather_columns(Builder& builder, ValueId x, ValueId ids);
ValueId gather_columns_grad(Builder& builder, ValueId dy, ValueId ids, int64_t columns);

ValueId limit_ids(Builder& builder, ValueId ids, int64_t limit, int64_t otherwise = -1);
ValueId lookup_ids(Builder& builder, ValueId table, ValueId ids);
ValueId near_best(Builder& builder, ValueId x, ValueId ids, int64_t excluded, double slack);
ValueId near_best_grad(Builder& builder, ValueId x, ValueId ids, ValueId dy, int64_t excluded, double slack);

}  // namespace tenon
