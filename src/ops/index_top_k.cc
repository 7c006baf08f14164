#include "ops/index_top_k.h"

#include <algorithm>
#include <numeric>

#include "ops/pages.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},
                                 {"k", Elements::floating, 3},
                                 {"weights", Elements::f32, 2},
                                 {"sequence_begin", Elements::i32, 1}};
constexpr InputRule kPagedInputs[] = {{"q", Elements::floating, 3},  {"k_cache", Elements::floating, 4},
                                      {"weights", Elements::f32, 2}, {"page_table", Elements::i32, 2},
                                      {"stream", Elements::i32, 1},  {"positions", Elements::i32, 1}};

// Every how many positions there is a key to choose.
int64_t stride_of(const Attrs& attrs) {
  return attrs.has("stride") ? attrs.integer("stride") : 1;
}

Status check(const OpSite& site) {
  const Type &q = site.inputs[0], &k = site.inputs[1];
  RETURN_IF_ERROR(expect(site, q.dtype == k.dtype, "q and k differ in dtype"));
  RETURN_IF_ERROR(expect_extent(site, "the innermost extent of k", k.shape[-1], q.shape[2]));
  RETURN_IF_ERROR(expect_extent(site, "the number of key heads", k.shape[-2], 1));
  RETURN_IF_ERROR(
      expect(site, site.inputs[2].shape == (Shape{q.shape[0], q.shape[1]}), "weights does not fit q"));
  RETURN_IF_ERROR(expect(site, stride_of(site.attrs) > 0, "stride must be positive"));
  return expect(site, site.attrs.integer("n") > 0, "n must be positive");
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(check(site));
  const int64_t tokens = site.inputs[0].shape[0];
  RETURN_IF_ERROR(expect_extent(site, "the number of tokens of k", site.inputs[1].shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[3].shape[0], tokens));
  return std::vector<Type>{Type{DType::i32, Shape{tokens, site.attrs.integer("n")}}};
}

InferredTypes infer_paged(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kPagedInputs));
  RETURN_IF_ERROR(check(site));
  const int64_t tokens = site.inputs[0].shape[0];
  RETURN_IF_ERROR(expect_extent(site, "the length of stream", site.inputs[4].shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of positions", site.inputs[5].shape[0], tokens));
  return std::vector<Type>{Type{DType::i32, Shape{tokens, site.attrs.integer("n")}}};
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  const Shape &q = site.inputs[0].shape, &k = site.inputs[1].shape;
  const int64_t keys = site.inputs.size() == 4 ? k[0] / 2 : site.inputs[3].shape[1] * k[1];
  cost.flops = 2 * q.elements() * keys / stride_of(site.attrs);
  return cost;
}

// The ids of token t, which sees `seen` positions, of which key_row(i) gives the row.
template <typename F>
void choose(const ReferenceCall& call, int64_t t, int64_t seen, int64_t first, F key_row) {
  const Shape& q = call.inputs[0].type.shape;
  const int64_t heads = q[1], dim = q[2], n = call.attrs.integer("n");
  const int64_t stride = stride_of(call.attrs), count = seen / stride;
  const auto position = [&](int64_t i) { return (i + 1) * stride - 1; };
  std::vector<double> scores(static_cast<size_t>(count), 0);
  for (int64_t i = 0; i < count; ++i) {
    const double* k = key_row(position(i));
    for (int64_t h = 0; h < heads; ++h) {
      double dot = 0;
      for (int64_t d = 0; d < dim; ++d) dot += call.inputs[0].data[(t * heads + h) * dim + d] * k[d];
      scores[static_cast<size_t>(i)] +=
          call.inputs[2].data[t * heads + h] * std::max(0.0, call.attrs.real("scale") * dot);
    }
  }
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(std::min(count, n)));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < n; ++i) {
    const bool there = i < static_cast<int64_t>(order.size());
    call.outputs[0].data[t * n + i] =
        there ? static_cast<double>(first + position(order[static_cast<size_t>(i)])) : -1;
  }
}

void reference(const ReferenceCall& call) {
  const int64_t dim = call.inputs[0].type.shape[2];
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const auto begin = static_cast<int64_t>(call.inputs[3].data[t]);
    choose(call, t, t - begin + 1, begin, [&](int64_t i) { return call.inputs[1].data + (begin + i) * dim; });
  }
}

void reference_paged(const ReferenceCall& call) {
  const int64_t dim = call.inputs[0].type.shape[2];
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[4].data[t]);
    const int64_t count = stream < 0 ? 0 : static_cast<int64_t>(call.inputs[5].data[t]) + 1;
    choose(call, t, count, 0, [&](int64_t i) {
      return call.inputs[1].data + page_slot(call.inputs[1], call.inputs[3], stream, i) * dim;
    });
  }
}

}  // namespace

const OpDef& index_top_k_op() {
  static constexpr OpDef def{.name = "index_top_k", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

const OpDef& index_top_k_paged_op() {
  static constexpr OpDef def{
      .name = "index_top_k_paged", .infer = infer_paged, .cost = cost, .reference = reference_paged};
  return def;
}

const OpDef& entry_top_k_op() {
  static constexpr OpDef def{.name = "entry_top_k", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

const OpDef& entry_top_k_paged_op() {
  static constexpr OpDef def{
      .name = "entry_top_k_paged", .infer = infer_paged, .cost = cost, .reference = reference_paged};
  return def;
}

ValueId index_top_k(Builder& builder, ValueId q, ValueId k, ValueId weights, ValueId sequence_begin,
                    int64_t n, double scale) {
  return builder.emit_one(index_top_k_op(), {q, k, weights, sequence_begin}, {{"n", n}, {"scale", scale}});
}

ValueId index_top_k_paged(Builder& builder, const PagedIndexInputs& in, int64_t n, double scale) {
  return builder.emit_one(index_top_k_paged_op(),
                          {in.q, in.k_cache, in.weights, in.page_table, in.stream, in.positions},
                          {{"n", n}, {"scale", scale}});
}

ValueId entry_top_k(Builder& builder, ValueId q, ValueId k, ValueId weights, ValueId sequence_begin,
                    const EntryOptions& options) {
  return builder.emit_one(entry_top_k_op(), {q, k, weights, sequence_begin},
                          {{"n", options.n}, {"scale", options.scale}, {"stride", options.stride}});
}

ValueId entry_top_k_paged(Builder& builder, const PagedIndexInputs& in, const EntryOptions& options) {
  return builder.emit_one(entry_top_k_paged_op(),
                          {in.q, in.k_cache, in.weights, in.page_table, in.stream, in.positions},
                          {{"n", options.n}, {"scale", options.scale}, {"stride", options.stride}});
}

}  // namespace tenon
