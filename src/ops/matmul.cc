#include "ops/matmul.h"

#include "ops/column_sum.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"a", Elements::floating, 2}, {"b", Elements::number, 2}, {"addend"}};

struct Extents {
  int64_t m, n, k;  // of the product
  int64_t b_k;      // k as b has it
};

Extents extents(const OpSite& site) {
  const Shape &a = site.inputs[0].shape, &b = site.inputs[1].shape;
  const bool trans_a = site.attrs.flag("trans_a"), trans_b = site.attrs.flag("trans_b");
  return {
      .m = a[trans_a ? 1 : 0], .n = b[trans_b ? 0 : 1], .k = a[trans_a ? 0 : 1], .b_k = b[trans_b ? 1 : 0]};
}

InferredTypes infer(const OpSite& site) {
  const size_t count = site.inputs.size() == 3 ? 3 : 2;
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(count)));
  const Extents e = extents(site);
  RETURN_IF_ERROR(expect_extent(site, "the inner extent of b", e.b_k, e.k));
  const Type out{site.attrs.dtype("out_dtype"), Shape{e.m, e.n}};
  RETURN_IF_ERROR(
      expect(site, dtype_info(out.dtype).is_float, "out_dtype is not a plain floating-point one"));
  if (count == 3) {
    const Shape& addend = site.inputs[2].shape;
    RETURN_IF_ERROR(expect(site, addend == out.shape || addend == Shape{e.n},
                           "addend is neither of the output's shape nor one row of it"));
  }
  return std::vector<Type>{out};
}

// With A = a or a^T and B = b or b^T: dA = alpha dy B^T and dB = alpha A^T dy, each written so that the
// result comes out in the layout of its input.
ValueId gradient_a(const GradientSite& site, ValueId dy) {
  Builder& builder = site.builder;
  const bool trans_a = site.op.attrs.flag("trans_a"), trans_b = site.op.attrs.flag("trans_b");
  const ValueId b = site.op.inputs[1];
  MatmulOptions options{.alpha = site.op.attrs.real("alpha"), .out_dtype = builder.dtype(site.op.inputs[0])};
  if (!trans_a) {
    options.trans_b = !trans_b;
    return matmul(builder, dy, b, options);
  }
  options.trans_a = trans_b;
  options.trans_b = true;
  return matmul(builder, cast_to(builder, b, builder.dtype(dy)), dy, options);
}

ValueId gradient_b(const GradientSite& site, ValueId dy) {
  Builder& builder = site.builder;
  const bool trans_a = site.op.attrs.flag("trans_a"), trans_b = site.op.attrs.flag("trans_b");
  const ValueId a = site.op.inputs[0];
  MatmulOptions options{.alpha = site.op.attrs.real("alpha"),
                        .out_dtype = gradient_dtype(builder.dtype(site.op.inputs[1]))};
  if (!trans_b) {
    options.trans_a = !trans_a;
    return matmul(builder, a, dy, options);
  }
  options.trans_a = true;
  options.trans_b = trans_a;
  return matmul(builder, dy, a, options);
}

ValueId gradient_addend(const GradientSite& site, ValueId dy) {
  const Type addend = site.builder.type(site.op.inputs[2]);
  const ValueId gradient = addend.shape.rank() == 1 ? column_sum(site.builder, dy) : dy;
  return cast_to(site.builder, gradient, addend.dtype);
}

std::vector<ValueId> gradient(const GradientSite& site) {
  const ValueId dy = site.output_gradients[0];
  std::vector<ValueId> gradients(site.op.inputs.size());
  if (site.needed[0]) gradients[0] = gradient_a(site, dy);
  if (site.needed[1]) gradients[1] = gradient_b(site, dy);
  if (gradients.size() == 3 && site.needed[2]) gradients[2] = gradient_addend(site, dy);
  return gradients;
}

std::vector<Alias> aliases(const OpSite& site) {
  if (site.inputs.size() == 3 && site.inputs[2] == site.outputs[0]) return {Alias{0, 2, AliasKind::may}};
  return {};
}

Cost cost(const OpSite& site) {
  const Extents e = extents(site);
  Cost cost = streaming_cost(site, site.inputs.size() == 3 ? 1 : 0);
  cost.flops += 2 * e.m * e.n * e.k;
  return cost;
}

void reference(const ReferenceCall& call) {
  const Shape &a_shape = call.inputs[0].type.shape, &b_shape = call.inputs[1].type.shape;
  const bool trans_a = call.attrs.flag("trans_a"), trans_b = call.attrs.flag("trans_b");
  const double alpha = call.attrs.real("alpha");
  const double *a = call.inputs[0].data, *b = call.inputs[1].data;
  const int64_t m = call.outputs[0].type.shape[0], n = call.outputs[0].type.shape[1];
  const int64_t k = a_shape[trans_a ? 0 : 1];
  const bool has_addend = call.inputs.size() == 3;
  const bool addend_is_row = has_addend && call.inputs[2].type.shape.rank() == 1;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double total = 0;
      for (int64_t l = 0; l < k; ++l) {
        total += a[trans_a ? l * a_shape[1] + i : i * a_shape[1] + l] *
                 b[trans_b ? j * b_shape[1] + l : l * b_shape[1] + j];
      }
      total *= alpha;
      if (has_addend) total += call.inputs[2].data[addend_is_row ? j : i * n + j];
      call.outputs[0].data[i * n + j] = total;
    }
  }
}

}  // namespace

const OpDef& matmul_op() {
  static constexpr OpDef def{.name = "matmul",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = aliases,
                             .cost = cost,
                             .reference = reference};
  return def;
}

ValueId matmul(Builder& builder, ValueId a, ValueId b, const MatmulOptions& options) {
  std::vector<ValueId> inputs = {a, b};
  if (options.addend.valid()) inputs.push_back(options.addend);
  return builder.emit_one(matmul_op(), std::move(inputs),
                          {{"trans_a", options.trans_a},
                           {"trans_b", options.trans_b},
                           {"alpha", options.alpha},
                           {"out_dtype", options.out_dtype}});
}

ValueId linear(Builder& builder, ValueId x, ValueId w, ValueId addend) {
  return matmul(builder, x, w, {.trans_b = true, .out_dtype = builder.dtype(x), .addend = addend});
}

}  // namespace tenon
