#include "ops/linear_cross_entropy_rules.h"

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"hidden", Elements::floating, 2},
                                 {"weight", Elements::number, 2},
                                 {"labels", Elements::i32, 1},
                                 {"lse", Elements::f32, 1},
                                 {"dloss", Elements::f32, 1}};

Status check(const OpSite& site, size_t inputs) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(inputs)));
  const Shape &hidden = site.inputs[0].shape, &weight = site.inputs[1].shape;
  RETURN_IF_ERROR(expect_extent(site, "the hidden size of weight", weight[1], hidden[1]));
  RETURN_IF_ERROR(expect(site, weight[0] > 0, "the vocabulary is empty"));
  for (size_t i = 2; i < inputs; ++i) {
    RETURN_IF_ERROR(
        expect_extent(site, "the length of labels, lse or dloss", site.inputs[i].shape[0], hidden[0]));
  }
  return expect(site, site.attrs.real("softcap") >= 0, "softcap is negative");
}

}  // namespace

Attrs linear_cross_entropy_attrs(const LinearCrossEntropyOptions& options) {
  return {{"logit_scale", options.logit_scale}, {"softcap", options.softcap}};
}

LinearCrossEntropyOptions linear_cross_entropy_options(const Attrs& attrs) {
  return {.logit_scale = attrs.real("logit_scale"), .softcap = attrs.real("softcap")};
}

Status check_linear_cross_entropy(const OpSite& site) {
  return check(site, 3);
}

Status check_linear_cross_entropy_with_grad(const OpSite& site) {
  return check(site, 4);
}

Status check_linear_cross_entropy_grad(const OpSite& site) {
  return check(site, 5);
}

Cost linear_cross_entropy_grad_cost(const OpSite& site) {
  const Shape& hidden = site.inputs[0].shape;
  Cost cost = streaming_cost(site, 0);
  cost.flops = 4 * hidden[0] * hidden[1] * site.inputs[1].shape[0];
  return cost;
}

void logits_row(const ReferenceCall& call, int64_t token, std::vector<double>& logits) {
  const auto [logit_scale, softcap] = linear_cross_entropy_options(call.attrs);
  const Shape& weight = call.inputs[1].type.shape;
  const int64_t vocab = weight[0], size = weight[1];
  const double* hidden = call.inputs[0].data + token * size;
  logits.resize(static_cast<size_t>(vocab));
  for (int64_t v = 0; v < vocab; ++v) {
    double dot = 0;
    for (int64_t i = 0; i < size; ++i) dot += hidden[i] * call.inputs[1].data[v * size + i];
    const double z = logit_scale * dot;
    logits[v] = softcap > 0 ? softcap * std::tanh(z / softcap) : z;
  }
}

TokenLoss token_loss(const ReferenceCall& call, int64_t token, int64_t label, std::vector<double>& logits) {
  logits_row(call, token, logits);
  CHECK(label < static_cast<int64_t>(logits.size()), "a label is outside the vocabulary");
  const auto largest = std::max_element(logits.begin(), logits.end());  // the first of equal ones
  double total = 0;
  for (double z : logits) total += std::exp(z - *largest);
  const double lse = *largest + std::log(total);
  return {lse - logits[static_cast<size_t>(label)], lse, static_cast<double>(largest - logits.begin())};
}

void logits_to_derivative(const Attrs& attrs, int64_t label, double lse, double dloss,
                          std::vector<double>& logits) {
  const auto [logit_scale, softcap] = linear_cross_entropy_options(attrs);
  CHECK(label < static_cast<int64_t>(logits.size()), "a label is outside the vocabulary");
  for (size_t v = 0; v < logits.size(); ++v) {
    const double z = logits[v];
    const double slope = softcap > 0 ? 1 - (z / softcap) * (z / softcap) : 1.0;
    const double target = static_cast<int64_t>(v) == label ? 1.0 : 0.0;
    logits[v] = dloss * (std::exp(z - lse) - target) * slope * logit_scale;
  }
}

bool logits_grad_row(const ReferenceCall& call, int64_t token, std::vector<double>& gradient) {
  const auto label = static_cast<int64_t>(call.inputs[2].data[token]);
  if (label < 0) return false;
  logits_row(call, token, gradient);
  logits_to_derivative(call.attrs, label, call.inputs[3].data[token], call.inputs[4].data[token], gradient);
  return true;
}

}  // namespace tenon
