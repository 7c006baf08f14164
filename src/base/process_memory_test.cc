#include "base/process_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace tenon {
namespace {

TEST(ProcessMemory, GrowsByWhatIsTouched) {
  const ProcessMemory before = process_memory();
  ASSERT_GT(before.resident_bytes, 0);
  constexpr int64_t kTouched = int64_t{64} << 20;
  {
    std::vector<char> block(kTouched, 1);
    EXPECT_GE(process_memory().resident_bytes, before.resident_bytes + kTouched * 9 / 10);
    EXPECT_EQ(block.back(), 1);
  }
  EXPECT_GE(process_memory().peak_resident_bytes, before.resident_bytes + kTouched * 9 / 10);
}

}  // namespace
}  // namespace tenon
