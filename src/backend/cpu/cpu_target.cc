#include "backend/cpu/cpu_target.h"

#include "base/check.h"
#include "hwy/highway.h"

namespace tenon {
namespace {

std::vector<int64_t> supported_targets() {
  hwy::SetSupportedTargetsForTest(0);
  std::vector<int64_t> targets;
  for (const int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SCALAR}) {
    if (target == HWY_SCALAR || (hwy::SupportedTargets() & target) != 0) targets.push_back(target);
  }
  return targets;
}

}  // namespace

std::vector<std::string> cpu_targets() {
  std::vector<std::string> names;
  for (const int64_t target : supported_targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_cpu_target(std::string_view name) {
  for (const int64_t target : supported_targets()) {
    if (!name.empty() && name != hwy::TargetName(target)) continue;
    hwy::SetSupportedTargetsForTest(name.empty() ? 0 : target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return;
  }
  CHECK(false, "not an instruction set of this processor");
}

}  // namespace tenon
