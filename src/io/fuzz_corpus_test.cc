// Replays the saved inputs of the fuzz targets. A name that starts with "good" must be accepted, "bad"
// refused; any other input (found by a fuzzer) only has to keep the promises.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/folder.h"
#include "io/fuzz_checks.h"
#include "io/write_file.h"

namespace tenon {
namespace {

int replay(const std::string& target, bool (*check)(std::span<const std::byte>)) {
  const std::string folder = TENON_SOURCE_DIR "/tests/fuzz/" + target;
  const auto names = list_folder(folder);
  EXPECT_TRUE(names.ok()) << folder;
  if (!names.ok()) return 0;
  for (const std::string& name : *names) {
    const auto bytes = read_file(join_path(folder, name));
    EXPECT_TRUE(bytes.ok()) << name;
    if (!bytes.ok()) continue;
    // A copy of exact size on the heap, so that the sanitizers see a read past the end.
    const std::vector<char> exact(bytes->begin(), bytes->end());
    const bool accepted = check(std::as_bytes(std::span(exact)));
    if (name.starts_with("good")) {
      EXPECT_TRUE(accepted) << name;
    }
    if (name.starts_with("bad")) {
      EXPECT_FALSE(accepted) << name;
    }
  }
  return static_cast<int>(names->size());
}

TEST(FuzzCorpus, Safetensors) {
  EXPECT_GE(replay("safetensors_fuzz", fuzz_safetensors), 10);
}
TEST(FuzzCorpus, Gguf) {
  EXPECT_GE(replay("gguf_fuzz", fuzz_gguf), 10);
}
TEST(FuzzCorpus, Json) {
  EXPECT_GE(replay("json_fuzz", fuzz_json), 5);
}

}  // namespace
}  // namespace tenon
