// Where the static values of a plan lie, and how weights, adapters and constants get there. For exec/ alone.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "device/device.h"
#include "exec/executor.h"
#include "plan/plan.h"

namespace tenon {

struct PlacedStatic {
  const StaticValue* value = nullptr;
  std::byte* data = nullptr;  // in the static arena, or the caller's (never written then)
};
using PlacedStatics = std::unordered_map<std::string_view, PlacedStatic>;  // by names of the plan

// Whether the host reads and writes the device's buffers where they lie.
inline bool in_host_memory(const Device& device) {
  return device.facts().kind == DeviceKind::cpu;
}

// Places every static value of the plan, those that are not external from `arena` on (null where the plan has
// no static bytes), and writes weights and adapters through `source`, then constants. The report gets what
// was loaded. Errors: the source's, the device's, bad_argument or unsupported (external bytes that do not
// fit).
Result<PlacedStatics> load_statics(const Plan& plan, Device& device, std::byte* arena,
                                   const StaticSource& source, LoadReport& report);

}  // namespace tenon
