// One AdamW step (Loshchilov and Hutter 2019), in place, all f32. Inputs: param, grad, m, v [any shape];
// grad_norm [1]; hyper [3] f32 = learning rate, 1 - beta1^step, 1 - beta2^step. With max_norm > 0 the
// gradient is scaled by min(1, max_norm / (grad_norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. m' =
// beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2) g^2, param' = param (1 - lr weight_decay) - lr (m' /
// bias1) / (sqrt(v' / bias2) + eps). Where grad_norm is not finite, nothing changes.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& adamw_op();

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double max_norm = 0.0;
};
struct AdamWState {
  ValueId param, m, v;
};
AdamWState adamw(Builder& builder, const AdamWState& state, ValueId grad, ValueId grad_norm, ValueId hyper,
                 const AdamWOptions& options);

}  // namespace tenon
