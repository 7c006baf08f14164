#include "base/allocation_counter.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace tenon {
namespace {

struct alignas(128) Wide {
  char bytes[128];
};

TEST(AllocationCounter, CountsEveryFormOfNew) {
  const int64_t before = heap_allocations();
  auto one = std::make_unique<int>(1);
  auto many = std::make_unique<std::byte[]>(100);
  auto wide = std::make_unique<Wide>();
  std::unique_ptr<int> nothrow(new (std::nothrow) int(2));
  EXPECT_EQ(heap_allocations() - before, 4);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(wide.get()) % 128, 0u);
  EXPECT_NE(one.get(), nothrow.get());
}

TEST(AllocationCounter, StaysWhereNothingIsAllocated) {
  std::vector<int> reserved;
  reserved.reserve(16);
  const int64_t before = heap_allocations();
  for (int i = 0; i < 16; ++i) reserved.push_back(i);
  EXPECT_EQ(heap_allocations(), before);
}

}  // namespace
}  // namespace tenon
