#include "base/process_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace tenon {
namespace {

TEST(ProcessMemory, GrowsByWhatIsTouched) {
  const int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  constexpr int64_t kTouched = int64_t{64} << 20;
  {
    std::vector<char> block(kTouched, 1);
    EXPECT_GE(resident_bytes(), before + kTouched * 9 / 10);
    EXPECT_EQ(block.back(), 1);
  }
  EXPECT_GE(peak_resident_bytes(), before + kTouched * 9 / 10);
}

}  // namespace
}  // namespace tenon
