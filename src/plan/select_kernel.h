// Chooses the kernel of a step: the cheapest that serves it. Pure.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "device/kernel.h"

namespace tenon {

struct KernelRules {
  std::span<const std::string> without;  // kernel names that may not be chosen
  std::span<const std::string> require;  // "op=kernel": that op is served by that kernel or refused
};

Result<const KernelDef*> select_kernel(const OpSite& site, const DeviceFacts& facts,
                                       std::span<const KernelDef> kernels, const KernelRules& rules);

}  // namespace tenon
