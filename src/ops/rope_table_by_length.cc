#include "ops/rope_table_by_length.h"

#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"positions", Elements::i32, 1},
                                 {"length", Elements::i32, 1},
                                 {"inv_freq", Elements::f32, 1},
                                 {"long_inv_freq", Elements::f32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const int64_t tokens = site.inputs[0].shape[0], pairs = site.inputs[2].shape[0];
  RETURN_IF_ERROR(expect_extent(site, "the number of lengths", site.inputs[1].shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of long_inv_freq", site.inputs[3].shape[0], pairs));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("long_from") > 0, "long_from is not positive"));
  return std::vector<Type>{Type{DType::f32, Shape{tokens, 2, pairs}}};
}

double frequency(const ReferenceCall& call, int64_t pair, double length) {
  const double from = static_cast<double>(call.attrs.integer("long_from"));
  const double factor = call.attrs.real("dynamic_factor");
  if (length <= from) return call.inputs[2].data[pair];
  if (factor == 0) return call.inputs[3].data[pair];
  const double dim = 2 * static_cast<double>(call.inputs[2].type.shape[0]);
  const double theta =
      call.attrs.real("theta") * std::pow(factor * length / from - (factor - 1), dim / (dim - 2));
  return std::pow(theta, -2 * static_cast<double>(pair) / dim);
}

void reference(const ReferenceCall& call) {
  const double amplitude = call.attrs.real("amplitude");
  const int64_t tokens = call.inputs[0].type.shape[0], pairs = call.inputs[2].type.shape[0];
  for (int64_t t = 0; t < tokens; ++t) {
    double* cosines = call.outputs[0].data + t * 2 * pairs;
    for (int64_t i = 0; i < pairs; ++i) {
      const double angle = call.inputs[0].data[t] * frequency(call, i, call.inputs[1].data[t]);
      cosines[i] = amplitude * std::cos(angle);
      cosines[pairs + i] = amplitude * std::sin(angle);
    }
  }
}

}  // namespace

const OpDef& rope_table_by_length_op() {
  static constexpr OpDef def{.name = "rope_table_by_length",
                             .infer = infer,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 4); },
                             .reference = reference};
  return def;
}

ValueId rope_table_by_length(Builder& builder, ValueId positions, ValueId length, ValueId inv_freq,
                             ValueId long_inv_freq, const LengthOptions& options) {
  return builder.emit_one(rope_table_by_length_op(), {positions, length, inv_freq, long_inv_freq},
                          {{"long_from", options.long_from},
                           {"dynamic_factor", options.dynamic_factor},
                           {"theta", options.theta},
                           {"amplitude", options.amplitude}});
}

}  // namespace tenon
