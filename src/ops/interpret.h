// Runs ops, and whole Programs, through the fp64 references: the plain second way to
// every number, which kernels, gradient rules and passes are compared with. Slow; keeps every value.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "ir/program.h"

namespace tenon {

using ReferenceValues = std::vector<std::vector<double>>;

// The outputs of one op. `inputs` are as long as their types say; the shape rule must hold.
ReferenceValues evaluate_op(const OpDef& def, const Attrs& attrs, std::span<const Type> input_types,
                            const ReferenceValues& inputs);

// Whether values are rounded to their dtypes as they are made: with it, what the program's low-precision
// maths gives when every op is exact, which is the error that kernels are allowed a multiple of.
enum class Rounding : uint8_t { none, to_dtype };

// Every value of the program, by ValueId. `statics` gives weights, adapters and inputs by name; those that
// begin at zero in an executor (optimiser state, gradient sums, caches) may be left out, and constants are
// the program's own.
ReferenceValues evaluate_reference(const Program& program,
                                   const std::map<std::string, std::vector<double>, std::less<>>& statics,
                                   Rounding rounding = Rounding::none);

}  // namespace tenon
