// For tests of this room: the outputs of one op on inputs written down in the test.
#pragma once

#include <gmock/gmock.h>

#include <initializer_list>

#include "ops/cases/case_list.h"
#include "ops/interpret.h"

namespace tenon {

using Ids = std::span<const ValueId>;

inline ReferenceValues run_op(std::vector<CaseInput> inputs, CaseList::Emit emit) {
  CaseList list;
  list.add(std::move(inputs), emit);
  const OpCase op_case = list.take().front();
  return evaluate_op(*op_case.op, op_case.attrs, op_case.input_types(), case_inputs(op_case, 0));
}

// f64, so that the values stay as written.
inline CaseInput doubles(Shape shape, std::vector<double> values) {
  return given(DType::f64, shape, std::move(values));
}

inline auto near(std::vector<double> expected, double tolerance = 1e-12) {
  return testing::Pointwise(testing::DoubleNear(tolerance), expected);
}

}  // namespace tenon
