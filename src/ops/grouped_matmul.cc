#include "ops/grouped_matmul.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x", Elements::floating, 2},
                                 {"w", Elements::number, 3},
                                 {"group", Elements::i32, 1},
                                 {"addend", Elements::floating, 2}};
constexpr InputRule kGradInputs[] = {
    {"a", Elements::floating, 2}, {"b", Elements::floating, 2}, {"group", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(site.inputs.size() == 4 ? 4 : 3)));
  const Type &x = site.inputs[0], &w = site.inputs[1];
  const bool trans_b = site.attrs.flag("trans_b");
  RETURN_IF_ERROR(expect_extent(site, "the inner extent of w", w.shape[trans_b ? 2 : 1], x.shape[1]));
  RETURN_IF_ERROR(expect_extent(site, "the length of group", site.inputs[2].shape[0], x.shape[0]));
  const Type out{x.dtype, Shape{x.shape[0], w.shape[trans_b ? 1 : 2]}};
  RETURN_IF_ERROR(
      expect(site, site.inputs.size() == 3 || site.inputs[3] == out, "addend is not of the output's type"));
  return std::vector<Type>{out};
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kGradInputs));
  const Shape &a = site.inputs[0].shape, &b = site.inputs[1].shape;
  RETURN_IF_ERROR(expect_extent(site, "the number of rows of b", b[0], a[0]));
  RETURN_IF_ERROR(expect_extent(site, "the length of group", site.inputs[2].shape[0], a[0]));
  return std::vector<Type>{Type{DType::f32, Shape{site.attrs.integer("groups"), a[1], b[1]}}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  const auto& in = site.op.inputs;
  const ValueId dy = site.output_gradients[0];
  const bool trans_b = site.op.attrs.flag("trans_b");
  const double alpha = site.op.attrs.real("alpha");
  std::vector<ValueId> gradients(in.size());
  if (site.needed[0]) {
    gradients[0] = grouped_matmul(site.builder, dy, in[1], in[2], {.trans_b = !trans_b, .alpha = alpha});
  }
  if (site.needed[1]) {
    const ValueId a = trans_b ? dy : in[0], b = trans_b ? in[0] : dy;
    const int64_t groups = site.builder.shape(in[1])[0];
    gradients[1] = cast_to(site.builder, grouped_matmul_grad_weight(site.builder, a, b, in[2], groups, alpha),
                           gradient_dtype(site.builder.dtype(in[1])));
  }
  if (in.size() == 4 && site.needed[3]) gradients[3] = dy;
  return gradients;
}

std::vector<Alias> aliases(const OpSite& site) {
  if (site.inputs.size() == 4) return {Alias{0, 3, AliasKind::may}};
  return {};
}

// Each row reads one matrix; a perfect cache reads each matrix that has a row once, at most one a row.
Cost cost(const OpSite& site) {
  const Shape& w = site.inputs[1].shape;
  Cost cost = streaming_cost(site, 1);
  const int64_t touched = std::min(w[0], site.inputs[0].shape[0]);
  if (w[0] > 0) cost.bytes_read -= site.inputs[1].bytes() / w[0] * (w[0] - touched);
  cost.flops += 2 * site.inputs[0].shape[0] * w[1] * w[2];
  return cost;
}

Cost cost_grad(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = 2 * site.inputs[0].elements() * site.inputs[1].shape[1];
  return cost;
}

void reference(const ReferenceCall& call) {
  const int64_t rows = call.inputs[0].type.shape[0], depth = call.inputs[0].type.shape[1];
  const int64_t n = call.outputs[0].type.shape[1];
  const bool trans_b = call.attrs.flag("trans_b");
  for (int64_t r = 0; r < rows; ++r) {
    const auto group = static_cast<int64_t>(call.inputs[2].data[r]);
    CHECK(group >= -1 && group < call.inputs[1].type.shape[0], "a group is outside the matrices");
    const double* x = call.inputs[0].data + r * depth;
    const double* w = call.inputs[1].data + std::max<int64_t>(group, 0) * n * depth;
    for (int64_t j = 0; j < n; ++j) {
      double total = 0;
      for (int64_t i = 0; group >= 0 && i < depth; ++i)
        total += x[i] * w[trans_b ? j * depth + i : i * n + j];
      total *= call.attrs.real("alpha");
      call.outputs[0].data[r * n + j] =
          total + (call.inputs.size() == 4 ? call.inputs[3].data[r * n + j] : 0);
    }
  }
}

void reference_grad(const ReferenceCall& call) {
  const int64_t rows = call.inputs[0].type.shape[0], m = call.inputs[0].type.shape[1];
  const int64_t n = call.inputs[1].type.shape[1];
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    if (call.inputs[2].data[r] < 0) continue;
    double* out = call.outputs[0].data + static_cast<int64_t>(call.inputs[2].data[r]) * m * n;
    for (int64_t i = 0; i < m; ++i) {
      const double a = call.attrs.real("alpha") * call.inputs[0].data[r * m + i];
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += a * call.inputs[1].data[r * n + j];
    }
  }
}

}  // namespace

const OpDef& grouped_matmul_op() {
  static constexpr OpDef def{.name = "grouped_matmul",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = aliases,
                             .cost = cost,
                             .reference = reference};
  return def;
}

const OpDef& grouped_matmul_grad_weight_op() {
  static constexpr OpDef def{.name = "grouped_matmul_grad_weight",
                             .infer = infer_grad,
                             .cost = cost_grad,
                             .reference = reference_grad};
  return def;
}

ValueId grouped_matmul(Builder& builder, ValueId x, ValueId w, ValueId group,
                       const GroupedMatmulOptions& options) {
  std::vector<ValueId> inputs = {x, w, group};
  if (options.addend.valid()) inputs.push_back(options.addend);
  return builder.emit_one(grouped_matmul_op(), std::move(inputs),
                          {{"trans_b", options.trans_b}, {"alpha", options.alpha}});
}

ValueId grouped_matmul_grad_weight(Builder& builder, ValueId a, ValueId b, ValueId group, int64_t groups,
                                   double alpha) {
  return builder.emit_one(grouped_matmul_grad_weight_op(), {a, b, group},
                          {{"groups", groups}, {"alpha", alpha}});
}

}  // namespace tenon
