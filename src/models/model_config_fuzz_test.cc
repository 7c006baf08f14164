// Runs the fuzz target over its kept corpus, so that a found crash stays fixed in every build.
#include <gtest/gtest.h>

#include <vector>

#include "io/folder.h"
#include "io/write_file.h"
#include "models/model_config_fuzz.cc"

namespace tenon {
namespace {

TEST(ModelConfigFuzz, CorpusAndItsBeginningsEndWell) {
  const std::string folder = TENON_SOURCE_DIR "/tests/fuzz/model_config_fuzz";
  const auto names = list_folder(folder);
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) {
    const std::string text = *read_file(join_path(folder, name));
    const std::vector<uint8_t> bytes(text.begin(), text.end());  // of exact size, for the sanitizers
    const size_t stride = 1 + bytes.size() / 200;
    for (size_t size = 0; size < bytes.size(); size += stride)
      EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), size), 0) << name;
    EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0) << name;
  }
  EXPECT_GE(names->size(), 6u);
}

}  // namespace
}  // namespace tenon
