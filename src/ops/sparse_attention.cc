#include "ops/sparse_attention.h"

#include "ops/needed_gradients.h"
#include "ops/sparse_attention_rules.h"

namespace tenon {
namespace {

constexpr SparseLayout kPacked = {}, kGrad = {.grad = true}, kPaged = {.paged = true};

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!any_needed(site)) return needed_gradients(site, {});
  const auto& in = site.op.inputs;
  const auto found = sparse_attention_grad(
      site.builder,
      {in[0], in[1], in[2], in[3], site.op.outputs[0], site.op.outputs[1], site.output_gradients[0]},
      site.op.attrs.real("scale"));
  return needed_gradients(site, found);
}

}  // namespace

const OpDef& sparse_attention_op() {
  static constexpr OpDef def = sparse_attention_def<kPacked>("sparse_attention", gradient);
  return def;
}

const OpDef& sparse_attention_grad_op() {
  static constexpr OpDef def = sparse_attention_def<kGrad>("sparse_attention_grad");
  return def;
}

const OpDef& sparse_paged_attention_op() {
  static constexpr OpDef def = sparse_attention_def<kPaged>("sparse_paged_attention");
  return def;
}

ValueId sparse_attention(Builder& builder, ValueId q, ValueId k, ValueId v, ValueId ids, double scale) {
  return builder.emit(sparse_attention_op(), {q, k, v, ids}, {{"scale", scale}})[0];
}

std::vector<ValueId> sparse_attention_grad(Builder& builder, std::vector<ValueId> inputs, double scale) {
  return builder.emit(sparse_attention_grad_op(), std::move(inputs), {{"scale", scale}});
}

ValueId sparse_paged_attention(Builder& builder, const SparsePagedInputs& in, double scale) {
  return builder.emit_one(sparse_paged_attention_op(),
                          {in.q, in.k_cache, in.v_cache, in.page_table, in.stream, in.ids},
                          {{"scale", scale}});
}

}  // namespace tenon
