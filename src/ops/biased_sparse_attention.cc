#include "ops/biased_sparse_attention.h"

#include "ops/needed_gradients.h"
#include "ops/sparse_attention_rules.h"

namespace tenon {
namespace {

constexpr SparseLayout kPacked = {.biased = true}, kGrad = {.biased = true, .grad = true};
constexpr SparseLayout kPaged = {.biased = true, .paged = true};

std::vector<ValueId> gradient(const GradientSite& site) {
  const auto& in = site.op.inputs;
  if (!any_needed(site)) return needed_gradients(site, {});
  const bool sinks = site.op.attrs.flag("sinks");
  std::vector<ValueId> inputs = {
      in[0], in[1], in[2], in[3], site.op.outputs[0], site.op.outputs[1], site.output_gradients[0]};
  if (sinks) inputs.push_back(in[4]);
  const auto found =
      biased_sparse_attention_grad(site.builder, std::move(inputs), sinks, site.op.attrs.real("scale"));
  std::vector<ValueId> gradients = needed_gradients(site, std::span(found).first(3));
  if (sinks && site.needed[4]) gradients[4] = found[3];
  return gradients;
}

Attrs attrs_of(bool sinks, double scale) {
  return {{"sinks", sinks}, {"scale", scale}};
}

}  // namespace

const OpDef& biased_sparse_attention_op() {
  static constexpr OpDef def = sparse_attention_def<kPacked>("biased_sparse_attention", gradient);
  return def;
}

const OpDef& biased_sparse_attention_grad_op() {
  static constexpr OpDef def = sparse_attention_def<kGrad>("biased_sparse_attention_grad");
  return def;
}

const OpDef& biased_sparse_paged_attention_op() {
  static constexpr OpDef def = sparse_attention_def<kPaged>("biased_sparse_paged_attention");
  return def;
}

ValueId biased_sparse_attention(Builder& builder, const BiasedSparseInputs& in, double scale) {
  std::vector<ValueId> inputs = {in.q, in.k, in.v, in.ids};
  if (in.sinks.valid()) inputs.push_back(in.sinks);
  return builder.emit(biased_sparse_attention_op(), std::move(inputs), attrs_of(in.sinks.valid(), scale))[0];
}

std::vector<ValueId> biased_sparse_attention_grad(Builder& builder, std::vector<ValueId> inputs, bool sinks,
                                                  double scale) {
  return builder.emit(biased_sparse_attention_grad_op(), std::move(inputs), attrs_of(sinks, scale));
}

ValueId biased_sparse_paged_attention(Builder& builder, const SparsePagedInputs& in, ValueId sinks,
                                      double scale) {
  std::vector<ValueId> inputs = {in.q, in.k_cache, in.v_cache, in.page_table, in.stream, in.ids};
  if (sinks.valid()) inputs.push_back(sinks);
  return builder.emit_one(biased_sparse_paged_attention_op(), std::move(inputs),
                          attrs_of(sinks.valid(), scale));
}

}  // namespace tenon
