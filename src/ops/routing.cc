#include "ops/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kTopInputs[] = {{"x", Elements::floating, 2}};
constexpr InputRule kGatherInputs[] = {{"x", Elements::floating, 2}, {"ids", Elements::i32, 2}};

InferredTypes infer_top(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kTopInputs));
  const Shape& x = site.inputs[0].shape;
  const int64_t k = site.attrs.integer("k"), groups = site.attrs.integer("groups");
  const int64_t limit = site.attrs.integer("group_limit");
  RETURN_IF_ERROR(expect(site, groups > 0 && x[1] % groups == 0 && limit > 0 && limit <= groups,
                         "the groups do not fit the columns"));
  RETURN_IF_ERROR(
      expect(site, k > 0 && k <= x[1] / groups * limit, "k is more than there is to choose from"));
  return std::vector<Type>{Type{DType::i32, Shape{x[0], k}}};
}

InferredTypes infer_gather(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kGatherInputs));
  RETURN_IF_ERROR(
      expect_extent(site, "the number of rows of ids", site.inputs[1].shape[0], site.inputs[0].shape[0]));
  return std::vector<Type>{Type{site.inputs[0].dtype, site.inputs[1].shape}};
}

InferredTypes infer_gather_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kGatherInputs));
  RETURN_IF_ERROR(expect(site, site.inputs[0].shape == site.inputs[1].shape, "dy and ids differ in shape"));
  return std::vector<Type>{
      Type{site.inputs[0].dtype, Shape{site.inputs[0].shape[0], site.attrs.integer("columns")}}};
}

std::vector<ValueId> gradient_gather(const GradientSite& site) {
  if (!site.needed[0]) return std::vector<ValueId>(2);
  return {gather_columns_grad(site.builder, site.output_gradients[0], site.op.inputs[1],
                              site.builder.shape(site.op.inputs[0])[1]),
          ValueId{}};
}

// Indices of [0, count) by falling score, the first `k` of them in order.
std::vector<int64_t> best(int64_t count, int64_t k, const double* scores) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  order.resize(static_cast<size_t>(k));
  return order;
}

// Scores with those outside the best groups at minus infinity.
std::vector<double> limit_groups(const Attrs& attrs, const double* row, int64_t columns) {
  std::vector<double> scores(row, row + columns);
  const int64_t groups = attrs.integer("groups"), width = columns / groups;
  const int64_t summed = std::min(attrs.integer("group_sum"), width);
  std::vector<double> group_scores;
  for (int64_t g = 0; g < groups; ++g) {
    double score = 0;
    for (int64_t i : best(width, summed, row + g * width)) score += row[g * width + i];
    group_scores.push_back(score);
  }
  std::vector<bool> kept(static_cast<size_t>(groups), false);
  for (int64_t g : best(groups, attrs.integer("group_limit"), group_scores.data()))
    kept[static_cast<size_t>(g)] = true;
  for (int64_t i = 0; i < columns; ++i) {
    if (!kept[static_cast<size_t>(i / width)]) scores[static_cast<size_t>(i)] = -INFINITY;
  }
  return scores;
}

void reference_top(const ReferenceCall& call) {
  const int64_t rows = call.inputs[0].type.shape[0], columns = call.inputs[0].type.shape[1];
  const int64_t k = call.attrs.integer("k");
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = call.inputs[0].data + r * columns;
    const std::vector<double> scores = limit_groups(call.attrs, row, columns);
    const std::vector<int64_t> chosen = best(columns, k, scores.data());
    for (int64_t i = 0; i < k; ++i)
      call.outputs[0].data[r * k + i] = static_cast<double>(chosen[static_cast<size_t>(i)]);
  }
}

void reference_gather(const ReferenceCall& call) {
  const int64_t columns = call.inputs[0].type.shape[1], k = call.inputs[1].type.shape[1];
  for (int64_t i = 0; i < call.outputs[0].type.elements(); ++i) {
    call.outputs[0].data[i] =
        call.inputs[0].data[i / k * columns + static_cast<int64_t>(call.inputs[1].data[i])];
  }
}

void reference_gather_grad(const ReferenceCall& call) {
  const int64_t columns = call.outputs[0].type.shape[1], k = call.inputs[1].type.shape[1];
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  for (int64_t i = 0; i < call.inputs[0].type.elements(); ++i) {
    call.outputs[0].data[i / k * columns + static_cast<int64_t>(call.inputs[1].data[i])] +=
        call.inputs[0].data[i];
  }
}

InferredTypes infer_below(const OpSite& site) {
  constexpr InputRule kIds[] = {{"ids", Elements::i32}};
  RETURN_IF_ERROR(check_inputs(site, kIds));
  return std::vector<Type>{site.inputs[0]};
}

void reference_below(const ReferenceCall& call) {
  const double limit = static_cast<double>(call.attrs.integer("limit"));
  for (int64_t i = 0; i < call.outputs[0].type.elements(); ++i) {
    const double id = call.inputs[0].data[i];
    call.outputs[0].data[i] = id < limit ? id : static_cast<double>(call.attrs.integer("otherwise"));
  }
}

constexpr InputRule kNearInputs[] = {
    {"x", Elements::floating, 2}, {"ids", Elements::i32, 2}, {"dy", Elements::floating, 2}};

InferredTypes infer_near(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kNearInputs).first(site.op.name == "near_best" ? 2 : 3)));
  RETURN_IF_ERROR(
      expect_extent(site, "the number of rows of ids", site.inputs[1].shape[0], site.inputs[0].shape[0]));
  const int64_t excluded = site.attrs.integer("excluded");
  RETURN_IF_ERROR(
      expect(site, excluded >= 0 && excluded <= site.inputs[1].shape[1], "excluded is out of range"));
  RETURN_IF_ERROR(
      expect(site, site.inputs.size() == 2 || site.inputs[2] == site.inputs[0], "dy is not of x's type"));
  return std::vector<Type>{site.inputs[0]};
}

std::vector<ValueId> gradient_near(const GradientSite& site) {
  std::vector<ValueId> gradients(2);
  const auto& in = site.op.inputs;
  if (site.needed[0]) {
    gradients[0] = near_best_grad(site.builder, in[0], in[1], site.output_gradients[0],
                                  site.op.attrs.integer("excluded"), site.op.attrs.real("slack"));
  }
  return gradients;
}

// Which elements of row r are near its best.
std::vector<bool> near_row(const ReferenceCall& call, int64_t r) {
  const int64_t columns = call.inputs[0].type.shape[1], ids = call.inputs[1].type.shape[1];
  const double* x = call.inputs[0].data + r * columns;
  std::vector<bool> kept(static_cast<size_t>(columns), true);
  for (int64_t i = 0; i < call.attrs.integer("excluded"); ++i)
    kept[static_cast<size_t>(call.inputs[1].data[r * ids + i])] = false;
  double best = -INFINITY;
  for (int64_t c = 0; c < columns; ++c) {
    if (kept[static_cast<size_t>(c)]) best = std::max(best, x[c]);
  }
  for (int64_t c = 0; c < columns; ++c) {
    const bool near = (best - x[c]) / std::max(std::abs(x[c]), best) <= call.attrs.real("slack");
    kept[static_cast<size_t>(c)] = kept[static_cast<size_t>(c)] && near;
  }
  return kept;
}

template <bool kGradient>
void reference_near(const ReferenceCall& call) {
  const int64_t rows = call.inputs[0].type.shape[0], columns = call.inputs[0].type.shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<bool> kept = near_row(call, r);
    for (int64_t c = 0; c < columns; ++c) {
      const double from = call.inputs[kGradient ? 2 : 0].data[r * columns + c];
      call.outputs[0].data[r * columns + c] = kept[static_cast<size_t>(c)] ? from : kGradient ? 0 : -1e4;
    }
  }
}

constexpr auto kMoves = [](const OpSite& site) { return streaming_cost(site, 0); };

}  // namespace

const OpDef& top_k_op() {
  static constexpr OpDef def{.name = "top_k", .infer = infer_top, .cost = kMoves, .reference = reference_top};
  return def;
}

const OpDef& gather_columns_op() {
  static constexpr OpDef def{.name = "gather_columns",
                             .infer = infer_gather,
                             .gradient = gradient_gather,
                             .cost = kMoves,
                             .reference = reference_gather};
  return def;
}

const OpDef& gather_columns_grad_op() {
  static constexpr OpDef def{.name = "gather_columns_grad",
                             .infer = infer_gather_grad,
                             .cost = kMoves,
                             .reference = reference_gather_grad};
  return def;
}

const OpDef& limit_ids_op() {
  static constexpr OpDef def{
      .name = "limit_ids", .infer = infer_below, .cost = kMoves, .reference = reference_below};
  return def;
}

const OpDef& near_best_op() {
  static constexpr OpDef def{.name = "near_best",
                             .infer = infer_near,
                             .gradient = gradient_near,
                             .cost = kMoves,
                             .reference = reference_near<false>};
  return def;
}

const OpDef& near_best_grad_op() {
  static constexpr OpDef def{
      .name = "near_best_grad", .infer = infer_near, .cost = kMoves, .reference = reference_near<true>};
  return def;
}

ValueId top_k(Builder& builder, ValueId x, const TopKOptions& options) {
  return builder.emit_one(top_k_op(), {x},
                          {{"k", options.k},
                           {"groups", options.groups},
                           {"group_limit", options.group_limit},
                           {"group_sum", options.group_sum}});
}

ValueId gather_columns(Builder& builder, ValueId x, ValueId ids) {
  return builder.emit_one(gather_columns_op(), {x, ids});
}

ValueId gather_columns_grad(Builder& builder, ValueId dy, ValueId ids, int64_t columns) {
  return builder.emit_one(gather_columns_grad_op(), {dy, ids}, {{"columns", columns}});
}

ValueId limit_ids(Builder& builder, ValueId ids, int64_t limit, int64_t otherwise) {
  return builder.emit_one(limit_ids_op(), {ids}, {{"limit", limit}, {"otherwise", otherwise}});
}

ValueId near_best(Builder& builder, ValueId x, ValueId ids, int64_t excluded, double slack) {
  return builder.emit_one(near_best_op(), {x, ids}, {{"excluded", excluded}, {"slack", slack}});
}

ValueId near_best_grad(Builder& builder, ValueId x, ValueId ids, ValueId dy, int64_t excluded, double slack) {
  return builder.emit_one(near_best_grad_op(), {x, ids, dy}, {{"excluded", excluded}, {"slack", slack}});
}

}  // namespace tenon
