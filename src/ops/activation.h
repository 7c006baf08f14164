// out = f(x), element by element, computed in f64 or f32 and rounded once. Kinds: relu; relu2, the square of
// relu; gelu, x * P(N(0, 1) <= x) (Hendrycks and Gimpel 2016); gelu_tanh, its approximation by tanh; swish, x
// * sigmoid(a * x); sigmoid; tanh; softplus, log(1 + exp(x)); sqrt_softplus, its root; clamp to [a, b];
// softcap, a * tanh(x / a); exp; negative_exp, expm1(min(x, a)) - x where x <= 0 and otherwise 0; complement,
// sqrt(1 - exp(2 x)) for x < 0; reciprocal, 1 / x; sqrt. a and b are 0 where a kind has no use for them.
// activation_grad is dy * f'(x).
#pragma once

#include "ir/builder.h"

namespace tenon {

enum class ActivationKind : uint8_t {
  relu,
  relu2,
  gelu,
  gelu_tanh,
  swish,
  sigmoid,
  tanh,
  softplus,
  sqrt_softplus,
  clamp,
  softcap,
  exp,
  negative_exp,
  complement,
  reciprocal,
  sqrt,
};

const OpDef& activation_op();
const OpDef& activation_grad_op();
ValueId activation(Builder& builder, ValueId x, ActivationKind kind, double a = 0, double b = 0);
ValueId activation_grad(Builder& builder, ValueId x, ValueId dy, ActivationKind kind, double a = 0,
                        double b = 0);

}  // namespace tenon
