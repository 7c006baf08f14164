#include "ops/permute.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const std::vector<int64_t>& order = site.attrs.integers("order");
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool fits = static_cast<int>(order.size()) == site.inputs[0].shape.rank();
  for (size_t i = 0; i < sorted.size(); ++i) fits = fits && sorted[i] == static_cast<int64_t>(i);
  RETURN_IF_ERROR(expect(site, fits, "order is not one of the axes of x"));
  Type out = site.inputs[0];
  for (size_t i = 0; i < order.size(); ++i)
    out.shape[static_cast<int>(i)] = site.inputs[0].shape[static_cast<int>(order[i])];
  return std::vector<Type>{out};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  const std::vector<int64_t>& order = site.op.attrs.integers("order");
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return {permute(site.builder, site.output_gradients[0], back)};
}

void reference(const ReferenceCall& call) {
  const std::vector<int64_t>& order = call.attrs.integers("order");
  const Shape &in = call.inputs[0].type.shape, &out = call.outputs[0].type.shape;
  std::vector<int64_t> strides(order.size(), 1);  // of x, by axis of x
  for (int axis = in.rank() - 2; axis >= 0; --axis)
    strides[static_cast<size_t>(axis)] = strides[static_cast<size_t>(axis) + 1] * in[axis + 1];
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t rest = i, from = 0;
    for (int axis = out.rank() - 1; axis >= 0; --axis) {
      from += rest % out[axis] * strides[static_cast<size_t>(order[static_cast<size_t>(axis)])];
      rest /= out[axis];
    }
    call.outputs[0].data[i] = call.inputs[0].data[from];
  }
}

}  // namespace

const OpDef& permute_op() {
  static constexpr OpDef def{.name = "permute",
                             .infer = infer,
                             .gradient = gradient,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 0); },
                             .reference = reference};
  return def;
}

ValueId permute(Builder& builder, ValueId x, std::vector<int64_t> order) {
  return builder.emit_one(permute_op(), {x}, {{"order", std::move(order)}});
}

}  // namespace tenon
