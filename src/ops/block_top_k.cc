#include "ops/block_top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/pages.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {
    {"q", Elements::floating, 3}, {"k", Elements::floating, 3}, {"sequence_begin", Elements::i32, 1}};
constexpr InputRule kPagedInputs[] = {{"q", Elements::floating, 3},
                                      {"k_cache", Elements::floating, 4},
                                      {"page_table", Elements::i32, 2},
                                      {"stream", Elements::i32, 1},
                                      {"positions", Elements::i32, 1}};

InferredTypes ids_type(const OpSite& site) {
  const Type &q = site.inputs[0], &k = site.inputs[1];
  const int64_t n = site.attrs.integer("n"), block = site.attrs.integer("block");
  RETURN_IF_ERROR(expect(site, q.dtype == k.dtype, "q and k differ in dtype"));
  RETURN_IF_ERROR(expect_extent(site, "the innermost extent of k", k.shape[-1], q.shape[2]));
  RETURN_IF_ERROR(expect_extent(site, "the number of key heads", k.shape[-2], 1));
  RETURN_IF_ERROR(expect(site, n > 0 && block > 0, "n and block must be positive"));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("local") <= n, "more blocks are local than chosen"));
  return std::vector<Type>{Type{DType::i32, Shape{q.shape[0], q.shape[1], n * block}}};
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const int64_t tokens = site.inputs[0].shape[0];
  RETURN_IF_ERROR(expect_extent(site, "the number of tokens of k", site.inputs[1].shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[2].shape[0], tokens));
  return ids_type(site);
}

InferredTypes infer_paged(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kPagedInputs));
  const int64_t tokens = site.inputs[0].shape[0];
  RETURN_IF_ERROR(expect_extent(site, "the length of stream", site.inputs[3].shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of positions", site.inputs[4].shape[0], tokens));
  return ids_type(site);
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  const Shape &q = site.inputs[0].shape, &k = site.inputs[1].shape;
  cost.flops = 2 * q.elements() * (site.inputs.size() == 3 ? k[0] / 2 : site.inputs[2].shape[1] * k[1]);
  return cost;
}

// The blocks of one query, which sees `seen` positions, in rising order.
template <typename F>
std::vector<int64_t> best_blocks(const Attrs& attrs, const double* q, int64_t dim, int64_t seen, F key_row) {
  const int64_t block = attrs.integer("block"), blocks = (seen + block - 1) / block;
  std::vector<double> scores(static_cast<size_t>(blocks), -INFINITY);
  for (int64_t i = 0; i < seen; ++i) {
    const double* k = key_row(i);
    double& score = scores[static_cast<size_t>(i / block)];
    score = std::max(score, std::inner_product(q, q + dim, k, 0.0));
  }
  for (int64_t i = std::max<int64_t>(0, blocks - attrs.integer("local")); i < blocks; ++i)
    scores[static_cast<size_t>(i)] = INFINITY;
  std::vector<int64_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(std::min(blocks, attrs.integer("n"))));
  std::sort(order.begin(), order.end());
  return order;
}

template <typename F>
void choose(const ReferenceCall& call, int64_t t, int64_t seen, int64_t first, F key_row) {
  const Shape& q = call.inputs[0].type.shape;
  const int64_t block = call.attrs.integer("block"), width = call.attrs.integer("n") * block;
  for (int64_t row = t * q[1]; row < (t + 1) * q[1]; ++row) {
    double* ids = call.outputs[0].data + row * width;
    std::fill_n(ids, width, -1.0);
    for (int64_t b : best_blocks(call.attrs, call.inputs[0].data + row * q[2], q[2], seen, key_row)) {
      for (int64_t i = b * block; i < std::min(seen, (b + 1) * block); ++i)
        *ids++ = static_cast<double>(first + i);
    }
  }
}

void reference(const ReferenceCall& call) {
  const int64_t dim = call.inputs[0].type.shape[2];
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const auto begin = static_cast<int64_t>(call.inputs[2].data[t]);
    choose(call, t, t - begin + 1, begin, [&](int64_t i) { return call.inputs[1].data + (begin + i) * dim; });
  }
}

void reference_paged(const ReferenceCall& call) {
  const int64_t dim = call.inputs[0].type.shape[2];
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[3].data[t]);
    const int64_t seen = stream < 0 ? 0 : static_cast<int64_t>(call.inputs[4].data[t]) + 1;
    choose(call, t, seen, 0, [&](int64_t i) {
      return call.inputs[1].data + page_slot(call.inputs[1], call.inputs[2], stream, i) * dim;
    });
  }
}

Attrs attrs_of(const BlockTopKOptions& options) {
  return {{"n", options.n}, {"block", options.block}, {"local", options.local}};
}

}  // namespace

const OpDef& block_top_k_op() {
  static constexpr OpDef def{.name = "block_top_k", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

const OpDef& block_top_k_paged_op() {
  static constexpr OpDef def{
      .name = "block_top_k_paged", .infer = infer_paged, .cost = cost, .reference = reference_paged};
  return def;
}

ValueId block_top_k(Builder& builder, ValueId q, ValueId k, ValueId sequence_begin,
                    const BlockTopKOptions& options) {
  return builder.emit_one(block_top_k_op(), {q, k, sequence_begin}, attrs_of(options));
}

ValueId block_top_k_paged(Builder& builder, const PagedBlockInputs& in, const BlockTopKOptions& options) {
  return builder.emit_one(block_top_k_paged_op(), {in.q, in.k_cache, in.page_table, in.stream, in.positions},
                          attrs_of(options));
}

}  // namespace tenon
