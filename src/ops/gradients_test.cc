// Every gradient rule against central differences in double, on the op cases; every fused op against its
// expansion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ir/verify.h"
#include "ops/op_cases.h"
#include "ops/op_list.h"
#include "ops/rules.h"

namespace tenon {
namespace {

using Statics = std::map<std::string, std::vector<double>, std::less<>>;

// A case as a program: inputs, the op, and the weights that its first output is summed with. All gradients
// flow from that output.
struct Differentiated {
  Program program;
  std::vector<ValueId> gradients;  // by input
  Statics statics;
  std::vector<bool> needed;
};

std::string input_name(size_t i) {
  return "in" + std::to_string(i);
}

Differentiated differentiate(const OpCase& op_case, uint64_t seed) {
  Differentiated d;
  Builder builder(d.program);
  std::vector<ValueId> inputs;
  const ReferenceValues values = case_inputs(op_case, seed);
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    inputs.push_back(builder.add_static(Role::input, input_name(i), op_case.inputs[i].type));
    d.statics[input_name(i)] = values[i];
    d.needed.push_back(op_case.inputs[i].type.dtype != DType::i32);
  }
  const auto outputs = builder.emit(*op_case.op, inputs, op_case.attrs);
  const Type out = builder.type(outputs[0]);
  OpCase weights;
  weights.inputs.emplace_back();
  weights.inputs[0].type = Type{gradient_dtype(out.dtype), out.shape};
  d.statics["dy"] = case_inputs(weights, seed + 1)[0];
  std::vector<ValueId> output_gradients(outputs.size());
  output_gradients[0] = builder.add_static(Role::input, "dy", weights.inputs[0].type);
  const Op op = d.program.ops.back();
  bool needed[8] = {};
  for (size_t i = 0; i < d.needed.size(); ++i) needed[i] = d.needed[i];
  d.gradients = op_case.op->gradient(
      GradientSite{builder, op, output_gradients, std::span(needed).first(d.needed.size())});
  return d;
}

// The sum that the gradients are of. What is masked by minus infinity does not move.
double weighted_sum(const OpCase& op_case, const Differentiated& d, const ReferenceValues& inputs) {
  const auto outputs = evaluate_op(*op_case.op, op_case.attrs, op_case.input_types(), inputs);
  const std::vector<double>& weights = d.statics.at("dy");
  double total = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isfinite(outputs[0][i])) total += weights[i] * outputs[0][i];
  }
  return total;
}

// d sum / d inputs[input][at], by the five-point rule: an error of order step^4.
double difference(const OpCase& op_case, const Differentiated& d, ReferenceValues& inputs, size_t input,
                  size_t at) {
  double& x = inputs[input][at];
  const double centre = x, step = 2e-5 * std::max(1.0, std::abs(centre));
  double total = 0;
  for (const auto& [offset, factor] : {std::pair{-2, 1.0}, {-1, -8.0}, {1, 8.0}, {2, -1.0}}) {
    x = centre + offset * step;
    total += factor * weighted_sum(op_case, d, inputs);
  }
  x = centre;
  return total / (12 * step);
}

// ALiBi's slopes are constants of a model.
bool is_slopes(const OpCase& op_case, size_t input) {
  return op_case.op->name == "biased_attention" && op_case.attrs.integer("alibi") != 0 &&
         input + 1 == op_case.inputs.size();
}

void check_gradients(const OpCase& op_case) {
  SCOPED_TRACE(op_case.name);
  const Differentiated d = differentiate(op_case, 7);
  const Status verified = verify(d.program);
  ASSERT_TRUE(verified.ok()) << verified.error().text();
  ASSERT_EQ(d.gradients.size(), op_case.inputs.size());
  const ReferenceValues values = evaluate_reference(d.program, d.statics);
  ReferenceValues inputs;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) inputs.push_back(d.statics.at(input_name(i)));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& type = op_case.inputs[i].type;
    const bool differentiable = d.needed[i] && !(op_case.op->name == "rope" && i == 1) &&
                                !is_slopes(op_case, i) && op_case.op->name != "detach";
    ASSERT_EQ(d.gradients[i].valid(), differentiable) << "input " << i;
    if (!differentiable) continue;
    const Type& gradient_type = d.program.value(d.gradients[i]).type;
    EXPECT_EQ(gradient_type.shape, type.shape) << "input " << i;
    EXPECT_TRUE(gradient_type.dtype == type.dtype || gradient_type.dtype == DType::f32) << "input " << i;
    const std::vector<double>& gradient = values[static_cast<size_t>(d.gradients[i].index)];
    double largest = 1e-3;
    for (double g : gradient) largest = std::max(largest, std::abs(g));
    const size_t stride = std::max<size_t>(1, gradient.size() / 24);
    for (size_t at = 0; at < gradient.size(); at += stride) {
      EXPECT_NEAR(gradient[at], difference(op_case, d, inputs, i, at), 1e-6 * largest)
          << "input " << i << " element " << at;
    }
  }
}

// Differences run the reference a few hundred times.
bool small(const OpCase& op_case) {
  const std::vector<Type> types = op_case.input_types();
  return op_case.op->cost(OpSite{*op_case.op, op_case.attrs, types, op_case.outputs}).flops < 400'000;
}

TEST(Gradients, RulesMatchCentralDifferences) {
  std::set<std::string_view> checked;
  for (const OpCase& op_case : op_cases()) {
    if (op_case.op->gradient == nullptr || !small(op_case)) continue;
    check_gradients(op_case);
    checked.insert(op_case.op->name);
  }
  for (const OpDef* op : all_ops()) {
    if (op->gradient != nullptr) {
      EXPECT_TRUE(checked.contains(op->name)) << op->name;
    }
  }
}

// An op without a rule stops every gradient that reaches it, so the list is written down.
TEST(Gradients, OpsWithoutARule) {
  std::vector<std::string_view> without;
  for (const OpDef* op : all_ops()) {
    if (op->gradient == nullptr) without.push_back(op->name);
  }
  EXPECT_THAT(
      without,
      testing::ElementsAre(
          "accumulate", "activation_grad", "adamw", "attention_grad", "biased_attention_grad",
          "biased_paged_attention", "biased_sparse_attention_grad", "biased_sparse_paged_attention",
          "block_ids", "block_top_k", "block_top_k_paged", "cache_write", "causal_conv_cached",
          "causal_conv_grad_input", "causal_conv_grad_weight", "column_sum", "embedding_grad",
          "entry_pool_cached", "entry_pool_grad", "entry_top_k", "entry_top_k_paged", "every_entry",
          "gather_columns_grad", "gather_rows_grad", "global_norm", "grouped_matmul_grad_weight",
          "index_top_k", "index_top_k_paged", "limit_ids", "linear_attention_cached", "linear_attention_grad",
          "linear_cross_entropy_grad_hidden", "linear_cross_entropy_grad_weight",
          "linear_cross_entropy_with_grad", "lookup_ids", "matmul_low_rank", "mix_rows_grad_weights",
          "near_best_grad", "ngram_ids", "ngram_ids_cached", "normalise_grad", "paged_attention",
          "position_scale", "rms_norm_grad_input", "rms_norm_grad_weight", "rope_table",
          "rope_table_by_length", "running_max_cached", "running_max_grad", "selective_scan_cached",
          "selective_scan_grad", "sequence_length", "shift_ids", "silu_grad", "sinkhorn_grad",
          "sparse_attention_grad", "sparse_paged_attention", "swiglu_grad", "top_k", "window_entry_ids",
          "wkv_cached", "wkv_grad", "zero"));
}

TEST(Gradients, NothingIsBuiltWhereNoneIsNeeded) {
  for (const OpCase& op_case : op_cases()) {
    if (op_case.op->gradient == nullptr) continue;
    Program program;
    Builder builder(program);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < op_case.inputs.size(); ++i) {
      inputs.push_back(builder.add_static(Role::input, input_name(i), op_case.inputs[i].type));
    }
    const auto outputs = builder.emit(*op_case.op, inputs, op_case.attrs);
    std::vector<ValueId> output_gradients(outputs.size());
    const Type& out = op_case.outputs[0];
    output_gradients[0] = builder.add_static(Role::input, "dy", Type{gradient_dtype(out.dtype), out.shape});
    const Op op = program.ops.back();
    const bool needed[8] = {};
    const auto gradients = op_case.op->gradient(
        GradientSite{builder, op, output_gradients, std::span(needed).first(inputs.size())});
    EXPECT_EQ(gradients.size(), inputs.size()) << op_case.name;
    for (ValueId id : gradients) EXPECT_FALSE(id.valid()) << op_case.name;
    EXPECT_EQ(program.ops.size(), 1u) << op_case.name;
  }
}

TEST(Expansions, EqualTheirOps) {
  int expanded = 0;
  for (const OpCase& op_case : op_cases()) {
    if (op_case.op->expand == nullptr) continue;
    ++expanded;
    Program program;
    Builder builder(program);
    std::vector<ValueId> ids;
    Statics statics;
    const ReferenceValues inputs = case_inputs(op_case, 3);
    for (size_t i = 0; i < inputs.size(); ++i) {
      ids.push_back(builder.add_static(Role::input, input_name(i), op_case.inputs[i].type));
      statics[input_name(i)] = inputs[i];
    }
    const auto plain = op_case.op->expand(builder, ids, op_case.attrs);
    const ReferenceValues values = evaluate_reference(program, statics);
    const ReferenceValues fused = evaluate_op(*op_case.op, op_case.attrs, op_case.input_types(), inputs);
    ASSERT_EQ(plain.size(), fused.size());
    for (size_t o = 0; o < fused.size(); ++o) {
      EXPECT_EQ(builder.type(plain[o]), op_case.outputs[o]) << op_case.name;
      const auto& expected = values[static_cast<size_t>(plain[o].index)];
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(fused[o][i], expected[i], 1e-12);
    }
  }
  EXPECT_GT(expanded, 0);
}

}  // namespace
}  // namespace tenon
