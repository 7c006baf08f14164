// Kernels that serve every op and run nothing, for the tests of plan/: each is named after its op.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device/kernel.h"
#include "ops/op_list.h"

namespace tenon {

inline DeviceFacts stub_facts(std::string name, std::vector<std::string> features = {}) {
  DeviceFacts facts;
  facts.name = std::move(name);
  facts.features = std::move(features);
  return facts;
}

// matmul and silu ask for scratch, so that scratch is planned too.
inline int64_t stub_scratch_bytes(const OpSite& site, const DeviceFacts&) {
  return site.op.name == "matmul" || site.op.name == "silu" ? site.outputs[0].bytes() + 1 : 0;
}

inline std::vector<KernelDef> stub_kernels() {
  std::vector<KernelDef> kernels;
  for (const OpDef* op : all_ops()) {
    kernels.push_back({.op = op->name,
                       .name = op->name,
                       .serves = [](const OpSite&, const DeviceFacts&) { return true; },
                       .workspace_bytes = stub_scratch_bytes,
                       .run = nullptr});
  }
  return kernels;
}

}  // namespace tenon
