#include "ops/position_scale.h"

#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"positions", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("period") > 0, "period is not positive"));
  return std::vector<Type>{Type{DType::f32, site.inputs[0].shape}};
}

void reference(const ReferenceCall& call) {
  const Attrs& a = call.attrs;
  for (int64_t t = 0; t < call.inputs[0].type.elements(); ++t) {
    if (a.flag("power")) {
      const double shifted = call.inputs[0].data[t] + static_cast<double>(a.integer("shift"));
      const double base = a.real("offset") + shifted / static_cast<double>(a.integer("period"));
      call.outputs[0].data[t] = std::pow(base, a.real("beta"));
      continue;
    }
    const double position = call.inputs[0].data[t] + static_cast<double>(a.integer("shift"));
    const double periods = std::floor(position / static_cast<double>(a.integer("period")));
    call.outputs[0].data[t] = a.real("constant") + a.real("beta") * std::log(a.real("offset") + periods);
  }
}

}  // namespace

const OpDef& position_scale_op() {
  static constexpr OpDef def{.name = "position_scale",
                             .infer = infer,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 4); },
                             .reference = reference};
  return def;
}

ValueId position_scale(Builder& builder, ValueId positions, const PositionScale& scale) {
  return builder.emit_one(position_scale_op(), {positions},
                          {{"constant", scale.constant},
                           {"beta", scale.beta},
                           {"offset", scale.offset},
                           {"shift", scale.shift},
                           {"period", scale.period},
                           {"power", scale.power}});
}

}  // namespace tenon
