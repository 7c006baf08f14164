// The table of op cases itself, and what must hold of every op on all of them.
#include "ops/op_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "ops/op_list.h"

namespace tenon {
namespace {

OpSite site_of(const OpCase& op_case, const std::vector<Type>& inputs) {
  return OpSite{*op_case.op, op_case.attrs, inputs, op_case.outputs};
}

TEST(OpList, NamesAreSortedUniqueAndFound) {
  std::string_view last;
  for (const OpDef* op : all_ops()) {
    EXPECT_LT(last, op->name);
    last = op->name;
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->cost, nullptr) << op->name;
    EXPECT_NE(op->reference, nullptr) << op->name;
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

TEST(OpCases, EveryOpHasOne) {
  std::map<std::string_view, int> cases;
  for (const OpCase& op_case : op_cases()) ++cases[op_case.op->name];
  for (const OpDef* op : all_ops()) EXPECT_GT(cases[op->name], 0) << op->name;
}

TEST(OpCases, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& op_case : op_cases()) EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name;
}

TEST(OpCases, InputsAreSeededAndExactInTheirDtype) {
  for (const OpCase& op_case : op_cases()) {
    const ReferenceValues inputs = case_inputs(op_case, 11);
    EXPECT_EQ(inputs, case_inputs(op_case, 11)) << op_case.name;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const DType dtype = op_case.inputs[i].type.dtype;
      for (double value : inputs[i]) {
        ASSERT_EQ(value, round_to_dtype(value, dtype)) << op_case.name;
        if (dtype == DType::i32) {
          ASSERT_EQ(value, std::trunc(value)) << op_case.name;
        }
      }
    }
  }
}

// Outputs begin as NaN here, so a reference that leaves one unwritten shows. A mask writes minus infinity.
TEST(OpCases, ReferencesWriteFiniteOutputsInFull) {
  for (const OpCase& op_case : op_cases()) {
    ReferenceValues inputs = case_inputs(op_case, 1), outputs;
    std::vector<ReferenceTensor> in, out;
    for (size_t i = 0; i < inputs.size(); ++i) in.push_back({op_case.inputs[i].type, inputs[i].data()});
    for (const Type& type : op_case.outputs) {
      outputs.emplace_back(static_cast<size_t>(type.elements()), std::nan(""));
    }
    for (size_t i = 0; i < outputs.size(); ++i) out.push_back({op_case.outputs[i], outputs[i].data()});
    op_case.op->reference(ReferenceCall{op_case.attrs, in, out});
    for (const auto& output : outputs) {
      for (double value : output) {
        const bool masked = op_case.op->name == "near_best" && value == -INFINITY;
        ASSERT_TRUE(masked || std::isfinite(value)) << op_case.name;
      }
    }
  }
}

TEST(OpCases, AliasesNameValuesOfTheSameBytes) {
  for (const OpCase& op_case : op_cases()) {
    const std::vector<Type> inputs = op_case.input_types();
    for (const Alias& alias : op_aliases(site_of(op_case, inputs))) {
      const Type& out = op_case.outputs[static_cast<size_t>(alias.output)];
      const Type& in = inputs[static_cast<size_t>(alias.input)];
      EXPECT_EQ(out.bytes(), in.bytes()) << op_case.name;
      if (alias.kind == AliasKind::must) {
        EXPECT_EQ(out, in) << op_case.name;
      }
    }
  }
}

TEST(OpCases, CostsCountEveryByteWritten) {
  for (const OpCase& op_case : op_cases()) {
    const std::vector<Type> inputs = op_case.input_types();
    const Cost cost = op_case.op->cost(site_of(op_case, inputs));
    EXPECT_GE(cost.flops, 0) << op_case.name;
    EXPECT_GE(cost.bytes_read, 0) << op_case.name;
    const std::string_view name = op_case.op->name;
    if (name == "reshape" || name == "cache_write") continue;  // a view; rows of the cache alone
    int64_t written = 0;
    for (const Type& type : op_case.outputs) written += type.bytes();
    EXPECT_EQ(cost.bytes_written, written) << op_case.name;
  }
}

}  // namespace
}  // namespace tenon
