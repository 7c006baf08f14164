#include "io/page_cache.h"

#include <gtest/gtest.h>

#include "io/write_file.h"

namespace tenon {
namespace {

TEST(PageCache, ReadsFilesAndSaysWhichIsMissing) {
  const std::string path = testing::TempDir() + "/page_cache_file";
  ASSERT_TRUE(write_file_atomic(path, std::string(9 << 20, 'x')).ok());
  const std::vector<std::string> one{path}, missing{path, path + ".none"};
  const auto speed = page_cache_bytes_per_second(one, 2, 6 << 20);
  ASSERT_TRUE(speed.ok()) << speed.error().text();
  EXPECT_GT(*speed, 1e6);
  EXPECT_LT(*speed, 1e13);
  EXPECT_EQ(page_cache_bytes_per_second({}, 1, 1).value(), 0.0);
  EXPECT_EQ(page_cache_bytes_per_second(missing, 1, 16 << 20).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace tenon
