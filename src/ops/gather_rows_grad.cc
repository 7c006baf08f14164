#include "ops/gather_rows_grad.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"dy", Elements::floating, 2}, {"rows", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type& dy = site.inputs[0];
  RETURN_IF_ERROR(expect_extent(site, "the number of rows", site.inputs[1].shape[0], dy.shape[0]));
  const int64_t n = site.attrs.integer("n");
  RETURN_IF_ERROR(expect(site, n >= 0, "n is negative"));
  return std::vector<Type>{Type{dy.dtype, Shape{n, dy.shape[1]}}};
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = site.inputs[0].elements();
  return cost;
}

void reference(const ReferenceCall& call) {
  const int64_t n = call.outputs[0].type.shape[0], width = call.outputs[0].type.shape[1];
  const int64_t count = call.inputs[1].type.shape[0];
  std::fill_n(call.outputs[0].data, n * width, 0.0);
  for (int64_t i = 0; i < count; ++i) {
    const auto row = static_cast<int64_t>(call.inputs[1].data[i]);
    CHECK(row >= 0 && row < n, "a row is outside x");
    for (int64_t j = 0; j < width; ++j) {
      call.outputs[0].data[row * width + j] += call.inputs[0].data[i * width + j];
    }
  }
}

}  // namespace

const OpDef& gather_rows_grad_op() {
  static constexpr OpDef def{
      .name = "gather_rows_grad", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

ValueId gather_rows_grad(Builder& builder, ValueId dy, ValueId rows, int64_t n) {
  return builder.emit_one(gather_rows_grad_op(), {dy, rows}, {{"n", n}});
}

}  // namespace tenon
