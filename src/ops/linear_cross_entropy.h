// Cross-entropy of the vocabulary head, logits never whole: z = softcap(logit_scale * hidden[t] · weight^T)
// in f32, loss[t] = lse(z) - z[labels[t]], 0 where labels[t] is negative (then the row is not computed at
// all). hidden [tokens, hidden], weight [vocab, hidden] in any dtype, read in hidden's as matmul reads b;
// labels [tokens] i32 below vocab. Outputs: loss [tokens] f32, lse [tokens] f32 (0 for untrained rows),
// predicted [tokens] i32 (the lowest index of the largest logit; -1 likewise). A gradient flows from loss
// alone.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& linear_cross_entropy_op();

// The attributes of linear_cross_entropy and its gradient ops, by these names.
struct LinearCrossEntropyOptions {
  double logit_scale = 1.0;
  double softcap = 0.0;
};
Attrs linear_cross_entropy_attrs(const LinearCrossEntropyOptions& options);
LinearCrossEntropyOptions linear_cross_entropy_options(const Attrs& attrs);

struct LinearCrossEntropyOutputs {
  ValueId loss, lse, predicted;
};
LinearCrossEntropyOutputs linear_cross_entropy(Builder& builder, ValueId hidden, ValueId weight,
                                               ValueId labels, const LinearCrossEntropyOptions& options);

}  // namespace tenon
