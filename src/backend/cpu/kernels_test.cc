// Every case of the op table on every kernel that serves it, with one, two and three threads and with every
// instruction set of this processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "backend/cpu/cpu_facts.h"
#include "backend/cpu/cpu_target.h"
#include "backend/cpu/kernel_harness.h"
#include "backend/cpu/kernel_list.h"
#include "ops/op_list.h"

namespace tenon {
namespace {

class CpuKernels : public testing::TestWithParam<std::string> {
 protected:
  ~CpuKernels() override { use_cpu_target(""); }
};

TEST_P(CpuKernels, AgreeWithTheReferenceOnEveryCase) {
  const bool best = GetParam() == cpu_targets().front();
  use_cpu_target(GetParam());
  ThreadPool one(1), two(2), three(3);
  for (const OpCase& op_case : op_cases()) {
    if (op_case.op->name == "reshape") continue;  // a view: no kernel runs
    SCOPED_TRACE(op_case.name);
    const Prepared rounded = prepare(op_case, 3);
    std::optional<Prepared> rounded_everywhere;
    int served = 0;
    for (const KernelDef& kernel : cpu_kernels()) {
      if (kernel.op != op_case.op->name || !kernel.serves(site_of(rounded), cpu_facts(1))) continue;
      ++served;
      SCOPED_TRACE(kernel.name);
      if (kernel.name.ends_with("_reference")) {
        if (best) check_kernel(kernel, prepare(op_case, 3, SecondOperand::as_is), one);
        continue;
      }
      if (multiplies_bf16(kernel) && !rounded_everywhere) {
        rounded_everywhere = prepare(op_case, 3, SecondOperand::rounded_everywhere);
      }
      const Prepared& p = multiplies_bf16(kernel) ? *rounded_everywhere : rounded;
      check_kernel(kernel, p, one);
      check_kernel(kernel, p, two);
      if (best) check_kernel(kernel, p, three);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GE(served, 1) << "no kernel serves this case";
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CpuKernels, testing::ValuesIn(cpu_targets()),
                         [](const auto& info) { return info.param; });

TEST(CpuKernelList, NamesAreUniqueAndOpsExist) {
  std::vector<std::string_view> names;
  for (const KernelDef& kernel : cpu_kernels()) {
    EXPECT_NE(find_op(kernel.op), nullptr) << kernel.name;
    names.push_back(kernel.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace tenon
