#include "ops/op_list.h"

#include <array>

#include "ops/accumulate.h"
#include "ops/activation.h"
#include "ops/adamw.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/attention_grad.h"
#include "ops/biased_attention.h"
#include "ops/biased_sparse_attention.h"
#include "ops/block_top_k.h"
#include "ops/broadcast.h"
#include "ops/cache_write.h"
#include "ops/cast.h"
#include "ops/causal_conv.h"
#include "ops/column_sum.h"
#include "ops/columns.h"
#include "ops/detach.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/embedding_grad.h"
#include "ops/entry_ids.h"
#include "ops/entry_pool.h"
#include "ops/fill.h"
#include "ops/gather_rows.h"
#include "ops/gather_rows_grad.h"
#include "ops/global_norm.h"
#include "ops/grouped_matmul.h"
#include "ops/index_top_k.h"
#include "ops/linear_attention.h"
#include "ops/linear_cross_entropy.h"
#include "ops/linear_cross_entropy_grad_hidden.h"
#include "ops/linear_cross_entropy_grad_weight.h"
#include "ops/linear_cross_entropy_with_grad.h"
#include "ops/matmul.h"
#include "ops/matmul_low_rank.h"
#include "ops/mix_rows.h"
#include "ops/mul.h"
#include "ops/ngram_ids.h"
#include "ops/normalise.h"
#include "ops/paged_attention.h"
#include "ops/permute.h"
#include "ops/position_scale.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_grad_input.h"
#include "ops/rms_norm_grad_weight.h"
#include "ops/rope.h"
#include "ops/rope_table.h"
#include "ops/rope_table_by_length.h"
#include "ops/routing.h"
#include "ops/running_max.h"
#include "ops/scale.h"
#include "ops/selective_scan.h"
#include "ops/sequence_length.h"
#include "ops/silu.h"
#include "ops/silu_grad.h"
#include "ops/sinkhorn.h"
#include "ops/sparse_attention.h"
#include "ops/sum.h"
#include "ops/swiglu.h"
#include "ops/swiglu_grad.h"
#include "ops/wkv.h"
#include "ops/zero.h"

namespace tenon {

std::span<const OpDef* const> all_ops() {
#define TENON_OP(name) &name##_op(),
  static const std::array ops = {
#include "ops/op_list.inc"
  };
#undef TENON_OP
  return ops;
}

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : all_ops()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace tenon
