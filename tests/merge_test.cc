// A merge that fails at any point of writing leaves neither the folder nor a part of it.
#include "run/merge.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "backend/cpu/cpu_device.h"
#include "io/write_points.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGolden = TENON_SOURCE_DIR "/tests/golden/smollm2";

MergeRequest request_into(const std::string& out) {
  MergeRequest request;
  request.model = kGolden;
  request.adapter = std::string(kGolden) + "/adapter";
  request.out = out;
  request.check = false;
  return request;
}

TEST(Merge, LeavesNothingWhereTheDiskIsFull) {
  const std::string out = testing::TempDir() + "/tenon_merge_test";
  fs::remove_all(out);
  const auto device = make_cpu_device(1);
  int64_t points = 0;
  {
    const write_points::ScopedFault count;
    const auto merged = merge_adapter(request_into(out), *device);
    ASSERT_TRUE(merged.ok()) << merged.error().text();
    points = count.points();
    fs::remove_all(out);
  }
  ASSERT_GT(points, 10);
  for (int64_t at = 0; at < points; at += 3) {
    const write_points::ScopedFault fault({write_points::FaultKind::no_space, at});
    const auto merged = merge_adapter(request_into(out), *device);
    if (merged.ok()) {  // what is left to do needs no space
      fs::remove_all(out);
      continue;
    }
    EXPECT_EQ(merged.error().code, ErrorCode::io);
    if (at < points - 1) {  // the last syncs what has its name already
      EXPECT_FALSE(fs::exists(out));
    }
    fs::remove_all(out);
    EXPECT_FALSE(fs::exists(out + ".partial"));
  }
}

}  // namespace
}  // namespace tenon
