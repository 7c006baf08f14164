#include "ops/rope.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x", Elements::floating, 3}, {"table", Elements::f32, 3}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Shape &x = site.inputs[0].shape, &table = site.inputs[1].shape;
  RETURN_IF_ERROR(expect_extent(site, "the number of tokens of table", table[0], x[0]));
  RETURN_IF_ERROR(expect_extent(site, "the middle extent of table", table[1], 2));
  RETURN_IF_ERROR(expect(site, 2 * table[2] <= x[2], "table rotates more elements than a head has"));
  return std::vector<Type>{site.inputs[0]};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}, ValueId{}};
  const Attrs& attrs = site.op.attrs;
  return {rope(site.builder, site.output_gradients[0], site.op.inputs[1], attrs.flag("interleaved"),
               !attrs.flag("inverse")),
          ValueId{}};
}

std::vector<Alias> aliases(const OpSite&) {
  return {Alias{0, 0, AliasKind::may}};
}

void reference(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].type.shape;
  const int64_t tokens = shape[0], heads = shape[1], head_dim = shape[2];
  const int64_t pairs = call.inputs[1].type.shape[2];
  const bool interleaved = call.attrs.flag("interleaved");
  const double direction = call.attrs.flag("inverse") ? -1 : 1;
  for (int64_t t = 0; t < tokens; ++t) {
    const double* cosines = call.inputs[1].data + t * 2 * pairs;
    const double* sines = cosines + pairs;
    for (int64_t h = 0; h < heads; ++h) {
      const double* x = call.inputs[0].data + (t * heads + h) * head_dim;
      double* out = call.outputs[0].data + (t * heads + h) * head_dim;
      std::copy_n(x, head_dim, out);
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t first = interleaved ? 2 * i : i;
        const int64_t second = interleaved ? 2 * i + 1 : i + pairs;
        const double c = cosines[i], s = direction * sines[i];
        out[first] = x[first] * c - x[second] * s;
        out[second] = x[second] * c + x[first] * s;
      }
    }
  }
}

}  // namespace

const OpDef& rope_op() {
  static constexpr OpDef def{.name = "rope",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = aliases,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 3); },
                             .reference = reference};
  return def;
}

ValueId rope(Builder& builder, ValueId x, ValueId table, bool interleaved, bool inverse) {
  return builder.emit_one(rope_op(), {x, table}, {{"interleaved", interleaved}, {"inverse", inverse}});
}

}  // namespace tenon
