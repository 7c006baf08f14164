#include "ops/adamw.h"

#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {
    {"param", Elements::f32}, {"grad", Elements::f32},         {"m", Elements::f32},
    {"v", Elements::f32},     {"grad_norm", Elements::f32, 1}, {"hyper", Elements::f32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type& param = site.inputs[0];
  for (int i = 1; i <= 3; ++i) {
    RETURN_IF_ERROR(
        expect(site, site.inputs[i].shape == param.shape, "param, grad, m and v differ in shape"));
  }
  RETURN_IF_ERROR(expect_extent(site, "the length of grad_norm", site.inputs[4].shape[0], 1));
  RETURN_IF_ERROR(expect_extent(site, "the length of hyper", site.inputs[5].shape[0], 3));
  return std::vector<Type>{param, param, param};
}

std::vector<Alias> aliases(const OpSite&) {
  return {Alias{0, 0, AliasKind::must}, Alias{1, 2, AliasKind::must}, Alias{2, 3, AliasKind::must}};
}

void reference(const ReferenceCall& call) {
  const double beta1 = call.attrs.real("beta1"), beta2 = call.attrs.real("beta2");
  const double eps = call.attrs.real("eps"), weight_decay = call.attrs.real("weight_decay");
  const double max_norm = call.attrs.real("max_norm");
  const double* hyper = call.inputs[5].data;
  const double lr = hyper[0], bias1 = hyper[1], bias2 = hyper[2];
  const double clip = max_norm > 0 ? std::min(1.0, max_norm / (call.inputs[4].data[0] + 1e-6)) : 1.0;
  const int64_t n = call.outputs[0].type.elements();
  if (!std::isfinite(call.inputs[4].data[0])) {
    for (int output = 0; output < 3; ++output)
      std::copy_n(call.inputs[output == 0 ? 0 : output + 1].data, n, call.outputs[output].data);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const double g = clip * call.inputs[1].data[i];
    const double m = beta1 * call.inputs[2].data[i] + (1 - beta1) * g;
    const double v = beta2 * call.inputs[3].data[i] + (1 - beta2) * g * g;
    call.outputs[0].data[i] =
        call.inputs[0].data[i] * (1 - lr * weight_decay) - lr * (m / bias1) / (std::sqrt(v / bias2) + eps);
    call.outputs[1].data[i] = m;
    call.outputs[2].data[i] = v;
  }
}

}  // namespace

const OpDef& adamw_op() {
  static constexpr OpDef def{.name = "adamw",
                             .infer = infer,
                             .aliases = aliases,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 6); },
                             .reference = reference};
  return def;
}

AdamWState adamw(Builder& builder, const AdamWState& state, ValueId grad, ValueId grad_norm, ValueId hyper,
                 const AdamWOptions& options) {
  const auto outputs = builder.emit(adamw_op(), {state.param, grad, state.m, state.v, grad_norm, hyper},
                                    {{"beta1", options.beta1},
                                     {"beta2", options.beta2},
                                     {"eps", options.eps},
                                     {"weight_decay", options.weight_decay},
                                     {"max_norm", options.max_norm}});
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace tenon
