#include "cli/ceilings.h"

#include "backend/cpu/cpu_ceilings.h"
#include "run/bench/gpu_ceilings.h"

namespace tenon {

Result<DeviceFacts> measured_facts(Device& device) {
  if (device.facts().kind == DeviceKind::cuda) return measure_gpu_ceilings(device);
  DeviceFacts facts = device.facts();
  measure_cpu_ceilings(facts);
  return facts;
}

}  // namespace tenon
