#include "ops/broadcast.h"

#include "ops/column_sum.h"
#include "ops/mul.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kRowInputs[] = {{"x"}, {"row", Elements::floating, 1}};
constexpr InputRule kColumnInputs[] = {{"x"}, {"column"}};
constexpr InputRule kDotInputs[] = {{"a"}, {"b"}};

int64_t rows_of(const Shape& shape) {
  return shape[-1] == 0 ? 0 : shape.elements() / shape[-1];
}

InferredTypes infer_row(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kRowInputs));
  const Type& x = site.inputs[0];
  RETURN_IF_ERROR(expect(site, x.shape.rank() >= 1, "x has no innermost axis"));
  RETURN_IF_ERROR(expect_extent(site, "the length of row", site.inputs[1].shape[0], x.shape[-1]));
  return std::vector<Type>{x};
}

InferredTypes infer_column(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kColumnInputs));
  const Type& x = site.inputs[0];
  RETURN_IF_ERROR(expect(site, x.shape.rank() >= 1 && x.shape[-1] > 0, "x has no innermost axis"));
  RETURN_IF_ERROR(
      expect_extent(site, "the number of elements of column", site.inputs[1].elements(), rows_of(x.shape)));
  return std::vector<Type>{x};
}

InferredTypes infer_dot(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kDotInputs));
  const Type& a = site.inputs[0];
  RETURN_IF_ERROR(
      expect(site, a.shape.rank() >= 1 && a.shape == site.inputs[1].shape, "a and b differ in shape"));
  const Type out{site.attrs.dtype("dtype"), Shape(site.attrs.integers("shape"))};
  RETURN_IF_ERROR(
      expect_extent(site, "the number of elements of the shape", out.elements(), rows_of(a.shape)));
  return std::vector<Type>{out};
}

ValueId row_gradient(const GradientSite& site, ValueId products) {
  return cast_to(site.builder, column_sum(site.builder, products), site.builder.dtype(site.op.inputs[1]));
}

std::vector<ValueId> gradient_add_row(const GradientSite& site) {
  const ValueId dy = site.output_gradients[0];
  return {site.needed[0] ? dy : ValueId{}, site.needed[1] ? row_gradient(site, dy) : ValueId{}};
}

std::vector<ValueId> gradient_mul_row(const GradientSite& site) {
  const ValueId dy = site.output_gradients[0], x = site.op.inputs[0];
  std::vector<ValueId> gradients(2);
  if (site.needed[0]) {
    gradients[0] = mul_row(site.builder, dy, site.op.inputs[1], site.op.attrs.real("offset"));
  }
  if (site.needed[1]) gradients[1] = row_gradient(site, mul(site.builder, dy, x));
  return gradients;
}

std::vector<ValueId> gradient_mul_column(const GradientSite& site) {
  const ValueId dy = site.output_gradients[0], x = site.op.inputs[0], column = site.op.inputs[1];
  std::vector<ValueId> gradients(2);
  if (site.needed[0]) gradients[0] = mul_column(site.builder, dy, column);
  if (site.needed[1]) {
    gradients[1] = row_dot(site.builder, dy, x, site.builder.dtype(column), site.builder.shape(column));
  }
  return gradients;
}

std::vector<ValueId> gradient_dot(const GradientSite& site) {
  const ValueId dy = site.output_gradients[0];
  std::vector<ValueId> gradients(2);
  for (size_t i = 0; i < 2; ++i) {
    if (!site.needed[i]) continue;
    const ValueId other = mul_column(site.builder, site.op.inputs[1 - i], dy);
    gradients[i] = cast_to(site.builder, other, site.builder.dtype(site.op.inputs[i]));
  }
  return gradients;
}

std::vector<Alias> alias_x(const OpSite&) {
  return {Alias{0, 0, AliasKind::may}};
}

// out = f(x, the row's element).
template <typename F>
void each(const ReferenceCall& call, F f) {
  const int64_t n = call.inputs[0].type.shape[-1];
  const int64_t count = call.outputs[0].type.elements();
  for (int64_t i = 0; i < count; ++i) call.outputs[0].data[i] = f(call.inputs[0].data[i], i / n, i % n);
}

void reference_add_row(const ReferenceCall& call) {
  each(call, [&](double x, int64_t, int64_t column) { return x + call.inputs[1].data[column]; });
}
void reference_mul_row(const ReferenceCall& call) {
  const double offset = call.attrs.real("offset");
  each(call, [&](double x, int64_t, int64_t column) { return x * (call.inputs[1].data[column] + offset); });
}
void reference_mul_column(const ReferenceCall& call) {
  each(call, [&](double x, int64_t row, int64_t) { return x * call.inputs[1].data[row]; });
}
void reference_dot(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].type.shape[-1];
  for (int64_t r = 0; r < call.outputs[0].type.elements(); ++r) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += call.inputs[0].data[r * n + i] * call.inputs[1].data[r * n + i];
    call.outputs[0].data[r] = total;
  }
}

Cost cost_dot(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = 2 * site.inputs[0].elements();
  return cost;
}

constexpr auto kOneFlop = [](const OpSite& site) { return streaming_cost(site, 1); };

}  // namespace

const OpDef& add_row_op() {
  static constexpr OpDef def{.name = "add_row",
                             .infer = infer_row,
                             .gradient = gradient_add_row,
                             .aliases = alias_x,
                             .cost = kOneFlop,
                             .reference = reference_add_row};
  return def;
}

const OpDef& mul_row_op() {
  static constexpr OpDef def{.name = "mul_row",
                             .infer = infer_row,
                             .gradient = gradient_mul_row,
                             .aliases = alias_x,
                             .cost = kOneFlop,
                             .reference = reference_mul_row};
  return def;
}

const OpDef& mul_column_op() {
  static constexpr OpDef def{.name = "mul_column",
                             .infer = infer_column,
                             .gradient = gradient_mul_column,
                             .aliases = alias_x,
                             .cost = kOneFlop,
                             .reference = reference_mul_column};
  return def;
}

const OpDef& row_dot_op() {
  static constexpr OpDef def{.name = "row_dot",
                             .infer = infer_dot,
                             .gradient = gradient_dot,
                             .cost = cost_dot,
                             .reference = reference_dot};
  return def;
}

ValueId add_row(Builder& builder, ValueId x, ValueId row) {
  return builder.emit_one(add_row_op(), {x, row});
}

ValueId mul_row(Builder& builder, ValueId x, ValueId row, double offset) {
  return builder.emit_one(mul_row_op(), {x, row}, {{"offset", offset}});
}

ValueId mul_column(Builder& builder, ValueId x, ValueId column) {
  return builder.emit_one(mul_column_op(), {x, column});
}

ValueId row_dot(Builder& builder, ValueId a, ValueId b, DType dtype, Shape shape) {
  const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  return builder.emit_one(row_dot_op(), {a, b}, {{"dtype", dtype}, {"shape", dims}});
}

}  // namespace tenon
