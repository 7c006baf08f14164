#include "ops/dropout.h"

#include "ops/philox.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}, {"seed", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect_extent(site, "the length of seed", site.inputs[1].shape[0], 2));
  const double rate = site.attrs.real("rate");
  RETURN_IF_ERROR(expect(site, rate >= 0 && rate < 1, "rate is outside [0, 1)"));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("stream") >= 0, "stream is negative"));
  return std::vector<Type>{site.inputs[0]};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}, ValueId{}};
  return {dropout(site.builder, site.output_gradients[0], site.op.inputs[1], site.op.attrs.real("rate"),
                  site.op.attrs.integer("stream")),
          ValueId{}};
}

std::vector<Alias> aliases(const OpSite&) {
  return {Alias{0, 0, AliasKind::may}};
}

uint32_t seed_word(double value) {
  return static_cast<uint32_t>(static_cast<int32_t>(value));
}

void reference(const ReferenceCall& call) {
  const double rate = call.attrs.real("rate");
  const uint64_t threshold = dropout_threshold(rate);
  const auto stream = static_cast<uint64_t>(call.attrs.integer("stream"));
  const std::array<uint32_t, 2> seed = {seed_word(call.inputs[1].data[0]), seed_word(call.inputs[1].data[1])};
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t word = philox_block(seed, stream, static_cast<uint64_t>(i) / 4)[i % 4];
    call.outputs[0].data[i] = word >= threshold ? call.inputs[0].data[i] / (1 - rate) : 0.0;
  }
}

}  // namespace

const OpDef& dropout_op() {
  static constexpr OpDef def{.name = "dropout",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = aliases,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 1); },
                             .reference = reference};
  return def;
}

ValueId dropout(Builder& builder, ValueId x, ValueId seed, double rate, int64_t stream) {
  return builder.emit_one(dropout_op(), {x, seed}, {{"rate", rate}, {"stream", stream}});
}

}  // namespace tenon
