#include "ops/mix_rows.h"

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x", Elements::floating, 3}, {"weights", Elements::f32, 3}};
constexpr InputRule kGradInputs[] = {{"dout", Elements::floating, 3}, {"x", Elements::floating, 3}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Shape &x = site.inputs[0].shape, &w = site.inputs[1].shape;
  const bool trans = site.attrs.flag("trans");
  RETURN_IF_ERROR(expect_extent(site, "the number of tokens of the weights", w[0], x[0]));
  RETURN_IF_ERROR(expect_extent(site, "the number of rows that the weights sum", w[trans ? 1 : 2], x[1]));
  return std::vector<Type>{Type{site.inputs[0].dtype, Shape{x[0], w[trans ? 2 : 1], x[2]}}};
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kGradInputs));
  const Shape &dout = site.inputs[0].shape, &x = site.inputs[1].shape;
  RETURN_IF_ERROR(expect_extent(site, "the number of tokens of x", x[0], dout[0]));
  RETURN_IF_ERROR(expect_extent(site, "the width of x", x[2], dout[2]));
  return std::vector<Type>{Type{DType::f32, Shape{dout[0], dout[1], x[1]}}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  std::vector<ValueId> gradients(2);
  const ValueId x = site.op.inputs[0], weights = site.op.inputs[1], dout = site.output_gradients[0];
  const bool trans = site.op.attrs.flag("trans");
  if (site.needed[0]) gradients[0] = mix_rows(site.builder, dout, weights, !trans);
  if (site.needed[1])
    gradients[1] =
        trans ? mix_rows_grad_weights(site.builder, x, dout) : mix_rows_grad_weights(site.builder, dout, x);
  return gradients;
}

Cost cost(const OpSite& site) {
  const Shape &a = site.inputs[0].shape, &out = site.outputs[0].shape;
  Cost cost = streaming_cost(site, 0);
  cost.flops = site.op.name == "mix_rows" ? 2 * a.elements() * out[1] : 2 * a.elements() * out[2];
  return cost;
}

void reference(const ReferenceCall& call) {
  const Shape &x = call.inputs[0].type.shape, &out = call.outputs[0].type.shape;
  const int64_t n = x[1], m = out[1], width = x[2];
  const bool trans = call.attrs.flag("trans");
  for (int64_t t = 0; t < x[0]; ++t) {
    for (int64_t i = 0; i < m * width; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const int64_t w = trans ? j * m + i / width : i / width * n + j;
        sum += call.inputs[1].data[t * m * n + w] * call.inputs[0].data[(t * n + j) * width + i % width];
      }
      call.outputs[0].data[t * m * width + i] = sum;
    }
  }
}

void reference_grad(const ReferenceCall& call) {
  const Shape &dout = call.inputs[0].type.shape, &x = call.inputs[1].type.shape;
  const int64_t m = dout[1], n = x[1], width = x[2];
  for (int64_t i = 0; i < dout[0] * m * n; ++i) {
    const double* left = call.inputs[0].data + i / n * width;
    const double* right = call.inputs[1].data + (i / (m * n) * n + i % n) * width;
    double sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += left[c] * right[c];
    call.outputs[0].data[i] = sum;
  }
}

}  // namespace

const OpDef& mix_rows_op() {
  static constexpr OpDef def{
      .name = "mix_rows", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

const OpDef& mix_rows_grad_weights_op() {
  static constexpr OpDef def{
      .name = "mix_rows_grad_weights", .infer = infer_grad, .cost = cost, .reference = reference_grad};
  return def;
}

ValueId mix_rows(Builder& builder, ValueId x, ValueId weights, bool trans) {
  return builder.emit_one(mix_rows_op(), {x, weights}, {{"trans", trans}});
}

ValueId mix_rows_grad_weights(Builder& builder, ValueId dout, ValueId x) {
  return builder.emit_one(mix_rows_grad_weights_op(), {dout, x});
}

}  // namespace tenon
