// What linear_cross_entropy and its gradient ops share. For ops/ alone.
#pragma once

#include <vector>

#include "ops/linear_cross_entropy.h"
#include "ops/rules.h"

namespace tenon {

// That hidden, weight and labels (the first three inputs) fit, and that the attributes are in range.
Status check_linear_cross_entropy(const OpSite& site);
// The shape rule of a gradient op, whose inputs are hidden, weight, labels, lse and dloss, up to its output.
Status check_linear_cross_entropy_grad(const OpSite& site);
// The same where the inputs are hidden, weight, labels and dloss.
Status check_linear_cross_entropy_with_grad(const OpSite& site);

// Work of one pass over the logits and one more product of that size.
Cost linear_cross_entropy_grad_cost(const OpSite& site);

// The logits of a token.
void logits_row(const ReferenceCall& call, int64_t token, std::vector<double>& logits);
// Loss, log of the softmax's sum and prediction of a token, whose logits are left in `logits`.
struct TokenLoss {
  double loss, lse, predicted;
};
TokenLoss token_loss(const ReferenceCall& call, int64_t token, int64_t label, std::vector<double>& logits);

// Logits of a token to the derivative of dloss times its loss by hidden · weight^T, in place.
void logits_to_derivative(const Attrs& attrs, int64_t label, double lse, double dloss,
                          std::vector<double>& logits);
// The derivative of the weighted loss by hidden · weight^T of a token (inputs as of a gradient op); false,
// and nothing written, where the token is untrained.
bool logits_grad_row(const ReferenceCall& call, int64_t token, std::vector<double>& gradient);

}  // namespace tenon
