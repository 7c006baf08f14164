#include "ops/routing.h"

#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr int64_t kMostGroups = 64;  // bits of a word

constexpr InputRule kTopInputs[] = {{"x", Elements::floating, 2}};
constexpr InputRule kGatherInputs[] = {{"x", Elements::floating, 2}, {"ids", Elements::i32, 2}};

InferredTypes infer_top(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kTopInputs));
  const Shape& x = site.inputs[0].shape;
  const int64_t k = site.attrs.integer("k"), groups = site.attrs.integer("groups");
  const int64_t limit = site.attrs.integer("group_limit");
  RETURN_IF_ERROR(expect(site, groups <= kMostGroups, "there are more than 64 groups"));
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

struct Scored {
  double score = INFINITY;
  int64_t index = -1;  // none

  // Larger scores first, the lower index first among equals.
  bool before(const Scored& other) const {
    return score > other.score || (score == other.score && index < other.index);
  }
};

// The first of [0, count) that comes after `previous`.
template <typename Score>
Scored next_best(int64_t count, Scored previous, Score score) {
  Scored best{-INFINITY, count};
  for (int64_t i = 0; i < count; ++i) {
    const Scored each{score(i), i};
    if (previous.before(each) && each.before(best)) best = each;
  }
  return best;
}

// The best groups, a bit for each.
uint64_t best_groups(const Attrs& attrs, const double* row, int64_t columns) {
  const int64_t groups = attrs.integer("groups"), width = columns / groups;
  const int64_t summed = std::min(attrs.integer("group_sum"), width);
  const auto group_score = [&](int64_t group) {
    double sum = 0;
    Scored best;
    for (int64_t n = 0; n < summed; ++n) {
      best = next_best(width, best, [&](int64_t i) { return row[group * width + i]; });
      sum += best.score;
    }
    return sum;
  };
  uint64_t kept = 0;
  Scored best;
  for (int64_t n = 0; n < attrs.integer("group_limit"); ++n) {
    best = next_best(groups, best, group_score);
    kept |= uint64_t{1} << best.index;
  }
  return kept;
}

void reference_top(const ReferenceCall& call) {
  const int64_t rows = call.inputs[0].type.shape[0], columns = call.inputs[0].type.shape[1];
  const int64_t k = call.attrs.integer("k"), groups = call.attrs.integer("groups");
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = call.inputs[0].data + r * columns;
    const uint64_t kept = groups == 1 ? 1 : best_groups(call.attrs, row, columns);
    const auto score = [&](int64_t i) { return kept >> (i / (columns / groups)) & 1 ? row[i] : -INFINITY; };
    Scored best;
    for (int64_t i = 0; i < k; ++i) {
      best = next_best(columns, best, score);
      call.outputs[0].data[r * k + i] = static_cast<double>(std::min(best.index, columns - 1));
    }
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

InferredTypes infer_lookup(const OpSite& site) {
  constexpr InputRule kRules[] = {{"table", Elements::f32, 2}, {"ids", Elements::i32, 1}};
  RETURN_IF_ERROR(check_inputs(site, kRules));
  return std::vector<Type>{Type{DType::i32, Shape{site.inputs[1].shape[0], site.inputs[0].shape[1]}}};
}

void reference_lookup(const ReferenceCall& call) {
  const int64_t rows = call.inputs[0].type.shape[0], n = call.inputs[0].type.shape[1];
  for (int64_t t = 0; t < call.inputs[1].type.shape[0]; ++t) {
    const auto id = static_cast<int64_t>(call.inputs[1].data[t]);
    CHECK(id >= 0 && id < rows, "an id is outside the table");
    std::copy_n(call.inputs[0].data + id * n, n, call.outputs[0].data + t * n);
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

template <bool kGradient>
void reference_near(const ReferenceCall& call) {
  const int64_t rows = call.inputs[0].type.shape[0], columns = call.inputs[0].type.shape[1];
  const int64_t ids = call.inputs[1].type.shape[1], excluded = call.attrs.integer("excluded");
  for (int64_t r = 0; r < rows; ++r) {
    const double *x = call.inputs[0].data + r * columns, *id = call.inputs[1].data + r * ids;
    const auto is_excluded = [&](int64_t c) {
      return std::find(id, id + excluded, static_cast<double>(c)) != id + excluded;
    };
    double best = -INFINITY;
    for (int64_t c = 0; c < columns; ++c) {
      if (!is_excluded(c)) best = std::max(best, x[c]);
    }
    for (int64_t c = 0; c < columns; ++c) {
      const bool near = (best - x[c]) / std::max(std::abs(x[c]), best) <= call.attrs.real("slack");
      const double from = call.inputs[kGradient ? 2 : 0].data[r * columns + c];
      call.outputs[0].data[r * columns + c] = near && !is_excluded(c) ? from : kGradient ? 0 : -INFINITY;
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

const OpDef& lookup_ids_op() {
  static constexpr OpDef def{
      .name = "lookup_ids", .infer = infer_lookup, .cost = kMoves, .reference = reference_lookup};
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

ValueId lookup_ids(Builder& builder, ValueId table, ValueId ids) {
  return builder.emit_one(lookup_ids_op(), {table, ids});
}

ValueId near_best(Builder& builder, ValueId x, ValueId ids, int64_t excluded, double slack) {
  return builder.emit_one(near_best_op(), {x, ids}, {{"excluded", excluded}, {"slack", slack}});
}

ValueId near_best_grad(Builder& builder, ValueId x, ValueId ids, ValueId dy, int64_t excluded, double slack) {
  return builder.emit_one(near_best_grad_op(), {x, ids, dy}, {{"excluded", excluded}, {"slack", slack}});
}

}  // namespace tenon
