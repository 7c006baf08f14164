#include "ops/cast.h"

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x", Elements::number}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const DType dtype = site.attrs.dtype("dtype");
  RETURN_IF_ERROR(expect(site, dtype_info(dtype).is_float, "dtype is not a plain floating-point one"));
  return std::vector<Type>{Type{dtype, site.inputs[0].shape}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  const DType dtype = gradient_dtype(site.builder.dtype(site.op.inputs[0]));
  return {cast_to(site.builder, site.output_gradients[0], dtype)};
}

void reference(const ReferenceCall& call) {
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] = call.inputs[0].data[i];
}

}  // namespace

const OpDef& cast_op() {
  static constexpr OpDef def{.name = "cast",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 1); },
                             .reference = reference};
  return def;
}

ValueId cast(Builder& builder, ValueId x, DType dtype) {
  return builder.emit_one(cast_op(), {x}, {{"dtype", dtype}});
}

}  // namespace tenon
