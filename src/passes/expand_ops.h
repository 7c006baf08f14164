// Replaces fused ops by the plain composition that each stands for, where a device has no kernel for the
// fused one.
#pragma once

#include <string_view>

#include "base/function_ref.h"
#include "ir/program.h"

namespace tenon {

// Ops for which `has_kernel` is false and that have a composition (OpDef::expand); others stay.
Program expand_ops(const Program& program, FunctionRef<bool(std::string_view op)> has_kernel);

}  // namespace tenon
