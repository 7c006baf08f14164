#include "ops/matmul_low_rank.h"

#include "ops/matmul.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"a", Elements::floating, 2},
                                 {"b", Elements::number, 2},
                                 {"low", Elements::floating, 2},
                                 {"up", Elements::number, 2},
                                 {"addend"}};

struct Extents {
  int64_t m, n, k, r;
};

Extents extents(const OpSite& site) {
  const Shape &a = site.inputs[0].shape, &b = site.inputs[1].shape;
  return {.m = a[0], .n = b[site.attrs.flag("trans_b") ? 0 : 1], .k = a[1], .r = site.inputs[2].shape[1]};
}

InferredTypes infer(const OpSite& site) {
  const size_t count = site.inputs.size() == 5 ? 5 : 4;
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(count)));
  const bool trans_b = site.attrs.flag("trans_b");
  const Extents e = extents(site);
  const Shape &b = site.inputs[1].shape, &low = site.inputs[2].shape, &up = site.inputs[3].shape;
  RETURN_IF_ERROR(expect_extent(site, "the inner extent of b", b[trans_b ? 1 : 0], e.k));
  RETURN_IF_ERROR(expect_extent(site, "the rows of low", low[0], e.m));
  RETURN_IF_ERROR(expect_extent(site, "the inner extent of up", up[trans_b ? 1 : 0], e.r));
  RETURN_IF_ERROR(expect_extent(site, "the outer extent of up", up[trans_b ? 0 : 1], e.n));
  const Type out{site.attrs.dtype("out_dtype"), Shape{e.m, e.n}};
  RETURN_IF_ERROR(
      expect(site, dtype_info(out.dtype).is_float, "out_dtype is not a plain floating-point one"));
  if (count == 5) {
    const Shape& addend = site.inputs[4].shape;
    RETURN_IF_ERROR(expect(site, addend == out.shape || addend == Shape{e.n},
                           "addend is neither of the output's shape nor one row of it"));
  }
  return std::vector<Type>{out};
}

std::vector<ValueId> expand(Builder& builder, std::span<const ValueId> inputs, const Attrs& attrs) {
  MatmulOptions base{.trans_b = attrs.flag("trans_b"), .out_dtype = attrs.dtype("out_dtype")};
  if (inputs.size() == 5) base.addend = inputs[4];
  MatmulOptions branch{.trans_b = base.trans_b, .alpha = attrs.real("alpha"), .out_dtype = base.out_dtype};
  branch.addend = matmul(builder, inputs[0], inputs[1], base);
  return {matmul(builder, inputs[2], inputs[3], branch)};
}

std::vector<Alias> aliases(const OpSite& site) {
  if (site.inputs.size() == 5 && site.inputs[4] == site.outputs[0]) return {Alias{0, 4, AliasKind::may}};
  return {};
}

Cost cost(const OpSite& site) {
  const Extents e = extents(site);
  Cost cost = streaming_cost(site, site.inputs.size() == 5 ? 2 : 1);
  cost.flops += 2 * e.m * e.n * (e.k + e.r);
  return cost;
}

// Row i of left times column j of right, as stored.
double dot(const double* left, const ReferenceTensor& right, bool transposed, int64_t j, int64_t depth) {
  const int64_t columns = right.type.shape[1];
  double total = 0;
  for (int64_t l = 0; l < depth; ++l) {
    total += left[l] * right.data[transposed ? j * columns + l : l * columns + j];
  }
  return total;
}

void reference(const ReferenceCall& call) {
  const bool trans_b = call.attrs.flag("trans_b");
  const double alpha = call.attrs.real("alpha");
  const int64_t m = call.outputs[0].type.shape[0], n = call.outputs[0].type.shape[1];
  const int64_t k = call.inputs[0].type.shape[1], r = call.inputs[2].type.shape[1];
  const bool has_addend = call.inputs.size() == 5;
  const bool addend_is_row = has_addend && call.inputs[4].type.shape.rank() == 1;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double total = dot(call.inputs[0].data + i * k, call.inputs[1], trans_b, j, k) +
                     alpha * dot(call.inputs[2].data + i * r, call.inputs[3], trans_b, j, r);
      if (has_addend) total += call.inputs[4].data[addend_is_row ? j : i * n + j];
      call.outputs[0].data[i * n + j] = total;
    }
  }
}

}  // namespace

const OpDef& matmul_low_rank_op() {
  static constexpr OpDef def{.name = "matmul_low_rank",
                             .infer = infer,
                             .expand = expand,
                             .aliases = aliases,
                             .cost = cost,
                             .reference = reference};
  return def;
}

ValueId matmul_low_rank(Builder& builder, const MatmulLowRankInputs& inputs,
                        const MatmulLowRankOptions& options) {
  std::vector<ValueId> ids = {inputs.a, inputs.b, inputs.low, inputs.up};
  if (inputs.addend.valid()) ids.push_back(inputs.addend);
  return builder.emit_one(
      matmul_low_rank_op(), std::move(ids),
      {{"trans_b", options.trans_b}, {"alpha", options.alpha}, {"out_dtype", options.out_dtype}});
}

}  // namespace tenon
