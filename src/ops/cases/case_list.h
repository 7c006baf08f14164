// Collects the op cases; one function an area of ops adds its own.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "ir/builder.h"
#include "ops/op_cases.h"

namespace tenon {

CaseInput normal(DType dtype, Shape shape, double scale = 1.0, double offset = 0.0);
CaseInput positive(DType dtype, Shape shape, double scale = 1.0);
CaseInput ids_below(int64_t limit, int64_t count);
CaseInput given(DType dtype, Shape shape, std::vector<double> values);
CaseInput given_ids(std::vector<double> values);  // i32 [count]

class CaseList {
 public:
  using Emit = FunctionRef<void(Builder&, std::span<const ValueId>)>;

  // The case of the one op that `emit` appends through the op's builder function.
  void add(std::vector<CaseInput> inputs, Emit emit, std::string_view label = {});
  // The last case added gets inputs that depend on others.
  void complete_with(void (*complete)(const OpCase&, ReferenceValues&)) { cases_.back().complete = complete; }

  std::vector<OpCase> take() { return std::move(cases_); }

 private:
  std::vector<OpCase> cases_;
};

void add_elementwise_cases(CaseList& list);
void add_matmul_cases(CaseList& list);
void add_row_cases(CaseList& list);  // embedding, gather_rows, norms, rope, sums
void add_attention_cases(CaseList& list);
void add_family_cases(
    CaseList& list);  // norms without weights, broadcasts, columns, experts, biased attention
void add_recurrence_cases(CaseList& list);  // convolution, linear attention, selective scan
void add_sparse_cases(CaseList& list);      // chosen keys
void add_loss_cases(CaseList& list);
void add_update_cases(CaseList& list);  // accumulate, adamw, global_norm, zero

}  // namespace tenon
