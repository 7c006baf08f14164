#include "ops/fill.h"

#include <algorithm>

#include "ops/rules.h"
#include "ops/sum.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"value", Elements::f32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect_extent(site, "the length of value", site.inputs[0].shape[0], 1));
  const std::vector<int64_t>& dims = site.attrs.integers("shape");
  RETURN_IF_ERROR(expect(site, dims.size() <= kMaxRank, "the shape has too many dimensions"));
  const Shape shape{std::span<const int64_t>(dims)};
  RETURN_IF_ERROR(
      expect(site, shape.checked_elements().has_value(), "the shape has a negative extent or is too large"));
  return std::vector<Type>{Type{DType::f32, shape}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {sum(site.builder, site.output_gradients[0])};
}

void reference(const ReferenceCall& call) {
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), call.inputs[0].data[0]);
}

}  // namespace

const OpDef& fill_op() {
  static constexpr OpDef def{.name = "fill",
                             .infer = infer,
                             .gradient = gradient,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 0); },
                             .reference = reference};
  return def;
}

ValueId fill(Builder& builder, ValueId value, Shape shape) {
  const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  return builder.emit_one(fill_op(), {value}, {{"shape", dims}});
}

}  // namespace tenon
