#include "ops/reshape.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(expect_extent(site, "the number of inputs", static_cast<int64_t>(site.inputs.size()), 1));
  const std::vector<int64_t>& dims = site.attrs.integers("shape");
  RETURN_IF_ERROR(expect(site, dims.size() <= kMaxRank, "the shape has too many dimensions"));
  const Type out{site.inputs[0].dtype, Shape(dims)};
  const auto elements = out.shape.checked_elements();
  RETURN_IF_ERROR(expect(site, elements.has_value(), "the shape has a negative extent or is too large"));
  RETURN_IF_ERROR(
      expect_extent(site, "the number of elements of the shape", *elements, site.inputs[0].elements()));
  const int64_t block = dtype_info(out.dtype).block_elements;
  RETURN_IF_ERROR(expect(site, block == 1 || (out.shape.rank() > 0 && out.shape[-1] % block == 0),
                         "the shape cuts a block of the dtype"));
  return std::vector<Type>{out};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {reshape(site.builder, site.output_gradients[0], site.builder.shape(site.op.inputs[0]))};
}

std::vector<Alias> aliases(const OpSite&) {
  return {Alias{0, 0, AliasKind::view}};
}

void reference(const ReferenceCall& call) {
  std::copy_n(call.inputs[0].data, call.outputs[0].type.elements(), call.outputs[0].data);
}

}  // namespace

const OpDef& reshape_op() {
  static constexpr OpDef def{.name = "reshape",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = aliases,
                             .cost = [](const OpSite&) { return Cost{}; },
                             .reference = reference};
  return def;
}

ValueId reshape(Builder& builder, ValueId x, Shape shape) {
  const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  return builder.emit_one(reshape_op(), {x}, {{"shape", dims}});
}

}  // namespace tenon
