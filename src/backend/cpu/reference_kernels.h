// One kernel an op that runs the op's fp64 definition (OpDef::reference): slow, on one thread, any dtype. Its
// cost is above every other kernel's, so that it serves only where nothing else does, and its name
// "<op>_reference" shows in the plan.
#pragma once

#include <span>

#include "device/kernel.h"

namespace tenon {

std::span<const KernelDef> reference_kernels();  // in the order of ops/op_list.inc

inline constexpr double kReferenceCost = 1e18;

}  // namespace tenon
