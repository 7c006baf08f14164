#include "cli/ceilings.h"

#include "backend/cpu/cpu_ceilings.h"

namespace tenon {

DeviceFacts measured_facts(DeviceFacts facts) {
  if (facts.kind == DeviceKind::cpu) measure_cpu_ceilings(facts);
  return facts;
}

}  // namespace tenon
