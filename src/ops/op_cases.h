// The table of op cases: for every op, sites with odd sizes, empty and single rows, dtypes and attributes,
// and how to make their inputs. The tests of this room check shape and gradient rules on them; a backend's
// tests run every kernel that serves a case against the reference. Seeded: the same case and seed give the
// same inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "ops/interpret.h"

namespace tenon {

struct CaseInput {
  enum class Fill : uint8_t {
    normal,    // offset + scale * a normal variate
    positive,  // its absolute value
    below,     // integers in [0, limit)
    given,     // `values`
  };
  Type type;
  Fill fill = Fill::normal;
  double scale = 1.0;
  double offset = 0.0;
  int64_t limit = 0;
  std::vector<double> values;
};

struct OpCase {
  std::string name;  // unique; op, types and attributes
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<CaseInput> inputs;
  std::vector<Type> outputs;
  // Makes inputs that depend on others (an lse that belongs to its q and k); null: none.
  void (*complete)(const OpCase& op_case, ReferenceValues& inputs) = nullptr;

  std::vector<Type> input_types() const;
};

// All cases, grouped by op.
std::vector<OpCase> op_cases();

// The inputs of a case, each value exact in its plain dtype. Those of block-quantised inputs are not: the
// caller encodes them, and gives the reference what the blocks decode to.
ReferenceValues case_inputs(const OpCase& op_case, uint64_t seed);

// The nearest value of a plain dtype, ties to even; integers and block-quantised dtypes: `value` itself.
double round_to_dtype(double value, DType dtype);

}  // namespace tenon
