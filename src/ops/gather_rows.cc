#include "ops/gather_rows.h"

#include <algorithm>

#include "ops/gather_rows_grad.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x", Elements::floating, 2}, {"rows", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type& x = site.inputs[0];
  return std::vector<Type>{Type{x.dtype, Shape{site.inputs[1].shape[0], x.shape[1]}}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}, ValueId{}};
  const int64_t n = site.builder.shape(site.op.inputs[0])[0];
  return {gather_rows_grad(site.builder, site.output_gradients[0], site.op.inputs[1], n), ValueId{}};
}

Cost cost(const OpSite& site) {
  return Cost{.flops = 0,
              .bytes_read = site.outputs[0].bytes() + site.inputs[1].bytes(),
              .bytes_written = site.outputs[0].bytes()};
}

void reference(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].type.shape[0], width = call.inputs[0].type.shape[1];
  const int64_t count = call.inputs[1].type.shape[0];
  for (int64_t i = 0; i < count; ++i) {
    const auto row = static_cast<int64_t>(call.inputs[1].data[i]);
    CHECK(row >= 0 && row < n, "a row is outside x");
    std::copy_n(call.inputs[0].data + row * width, width, call.outputs[0].data + i * width);
  }
}

}  // namespace

const OpDef& gather_rows_op() {
  static constexpr OpDef def{
      .name = "gather_rows", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

ValueId gather_rows(Builder& builder, ValueId x, ValueId rows) {
  return builder.emit_one(gather_rows_op(), {x, rows});
}

}  // namespace tenon
