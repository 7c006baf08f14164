// What an op is, as one table of functions: its shape rule, gradient rule, aliasing, cost and fp64 reference.
// Each op is defined once in ops/<op>.cc and listed in ops/op_list.inc; kernels of backends serve it by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/program.h"

namespace tenon {

class Builder;  // ir/builder.h

// One use of an op with its types, as rules and kernels see it.
struct OpSite {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const Type> inputs;
  std::span<const Type> outputs;  // empty while the shape rule runs
};

enum class AliasKind : uint8_t {
  may,   // the output may overwrite this input where it dies here: a kernel reads element i of every input
         // before it writes element i of any output
  must,  // the output is this input, updated
  view,  // the output is this input under another shape; no kernel runs
};

struct Alias {
  int output;
  int input;
  AliasKind kind;
};

// Work of one execution. flops counts a multiply-add as two; bytes are those a perfect cache would still
// move.
struct Cost {
  int64_t flops = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

// Reads every input and writes every output once: right for element-wise ops.
Cost streaming_cost(const OpSite& site, int64_t flops_per_output_element);

// What a gradient rule is given. It appends ops through `builder` and returns, for each input of `op`, the
// gradient of the loss with respect to it (an invalid id where `needed` is false or the gradient is zero by
// definition).
struct GradientSite {
  Builder& builder;
  const Op& op;                               // a copy: stays valid while the program grows
  std::span<const ValueId> output_gradients;  // invalid where nobody used that output
  std::span<const bool> needed;               // by input
};

// A tensor of the fp64 reference: row-major doubles; integers are exact.
struct ReferenceTensor {
  Type type;
  double* data;
};

struct ReferenceCall {
  const Attrs& attrs;
  std::span<const ReferenceTensor> inputs;   // not written
  std::span<const ReferenceTensor> outputs;  // written in full, before rounding to their dtypes
};

struct OpDef {
  std::string_view name;
  // Types of the outputs, or why the inputs do not fit.
  Result<std::vector<Type>> (*infer)(const OpSite& site);
  // The gradient rule; null: through `expand`, or none, where outputs are integers or updates.
  std::vector<ValueId> (*gradient)(const GradientSite& site) = nullptr;
  // The plain composition this fused op equals, built from its inputs; null where the op is plain itself. The
  // harness compares both; a fused op without its own gradient rule is differentiated through it.
  std::vector<ValueId> (*expand)(Builder& builder, std::span<const ValueId> inputs,
                                 const Attrs& attrs) = nullptr;
  // Which outputs may or must live where inputs do; null: none.
  std::vector<Alias> (*aliases)(const OpSite& site) = nullptr;
  Cost (*cost)(const OpSite& site);
  // The definition in double precision. Slow and plain.
  void (*reference)(const ReferenceCall& call);
};

// Aliases of a site, empty where the op has none.
std::vector<Alias> op_aliases(const OpSite& site);

}  // namespace tenon
