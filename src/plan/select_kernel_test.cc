#include "plan/select_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/add.h"
#include "plan/stub_kernels.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

const KernelDef kKernels[] = {
    {.op = "add",
     .name = "add_reference",
     .serves = [](const OpSite&, const DeviceFacts&) { return true; },
     .cost = [](const OpSite&, const DeviceFacts&) { return 100.0; },
     .run = nullptr},
    {.op = "add",
     .name = "add_plain",
     .serves = [](const OpSite& site, const DeviceFacts&) { return site.inputs[0].dtype == DType::f32; },
     .run = nullptr},
    {.op = "add",
     .name = "add_plain_too",
     .serves = [](const OpSite&, const DeviceFacts&) { return true; },
     .run = nullptr},
    {.op = "add",
     .name = "add_wide",
     .serves = [](const OpSite&, const DeviceFacts& facts) { return !facts.features.empty(); },
     .cost = [](const OpSite&, const DeviceFacts&) { return 0.5; },
     .run = nullptr},
    {.op = "addition",
     .name = "decoy",
     .serves = [](const OpSite&, const DeviceFacts&) { return true; },
     .run = nullptr},
};

std::string chosen(DType dtype, const DeviceFacts& facts = {}, std::vector<std::string> without = {},
                   std::vector<std::string> require = {}) {
  const Attrs attrs;
  const Type type{dtype, {2, 3}};
  const std::vector<Type> inputs{type, type}, outputs{type};
  const auto kernel =
      select_kernel(OpSite{add_op(), attrs, inputs, outputs}, facts, kKernels, {without, require});
  return kernel.ok() ? std::string((*kernel)->name) : kernel.error().text();
}

TEST(SelectKernel, TheCheapestThatServes) {
  EXPECT_EQ(chosen(DType::f32), "add_plain");  // tied with add_plain_too, earlier in the list
  EXPECT_EQ(chosen(DType::bf16), "add_plain_too");
  EXPECT_EQ(chosen(DType::f32, stub_facts("big", {"wide"})), "add_wide");
}

TEST(SelectKernel, Rules) {
  EXPECT_EQ(chosen(DType::f32, {}, {"add_plain"}), "add_plain_too");
  EXPECT_EQ(chosen(DType::f32, {}, {"add_plain", "add_plain_too"}), "add_reference");
  EXPECT_EQ(chosen(DType::f32, {}, {}, {"add=add_reference"}), "add_reference");
  EXPECT_EQ(chosen(DType::f32, {}, {}, {"addition=decoy"}), "add_plain");
}

TEST(SelectKernel, SaysWhyNoneServes) {
  const std::string refused = chosen(DType::f32, stub_facts("small"), {"add_plain_too"}, {"add=add_wide"});
  EXPECT_THAT(refused, HasSubstr("add(f32[2, 3], f32[2, 3]) -> (f32[2, 3])"));
  EXPECT_THAT(refused, HasSubstr("on small"));
  EXPECT_THAT(refused, HasSubstr("add_wide serves other types"));
  EXPECT_THAT(refused, HasSubstr("add_plain is not the required one"));
  EXPECT_THAT(refused, HasSubstr("add_plain_too is forbidden"));
  EXPECT_THAT(refused, HasSubstr("Kernel 'add_wide' is required."));
}

}  // namespace
}  // namespace tenon
