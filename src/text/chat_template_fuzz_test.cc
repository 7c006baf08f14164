// Runs the fuzz target's check over its kept corpus, so that a found crash stays fixed in every build.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "text/chat_template_fuzz_check.h"

namespace tenon {
namespace {

TEST(ChatTemplateFuzz, CorpusAndItsBeginningsEndWell) {
  const std::filesystem::path folder =
      std::filesystem::path(TENON_SOURCE_DIR) / "tests/fuzz/chat_template_fuzz";
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const size_t stride = bytes.size() / 40 + 1;
    for (size_t size = 0; size < bytes.size(); size += stride) fuzz_chat_template(bytes.substr(0, size));
    fuzz_chat_template(bytes);
    ++inputs;
  }
  EXPECT_GE(inputs, 12);
}

}  // namespace
}  // namespace tenon
