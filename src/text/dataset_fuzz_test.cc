// Runs the fuzz target over its kept corpus, so that a found crash stays fixed in every build.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "text/dataset_fuzz.cc"

namespace tenon {
namespace {

TEST(DatasetFuzz, CorpusAndItsBeginningsEndWell) {
  const std::filesystem::path folder = std::filesystem::path(TENON_SOURCE_DIR) / "tests/fuzz/dataset_fuzz";
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    const size_t stride = 1 + bytes.size() / 500;
    for (size_t size = 0; size < bytes.size(); size += stride)
      EXPECT_EQ(LLVMFuzzerTestOneInput(data, size), 0);
    EXPECT_EQ(LLVMFuzzerTestOneInput(data, bytes.size()), 0);
    ++inputs;
  }
  EXPECT_GE(inputs, 12);
}

}  // namespace
}  // namespace tenon
