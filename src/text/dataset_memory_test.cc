// What a data set holds in memory: 8 bytes a row (16 while the list of rows grows), and while rows stream
// past in shuffled order nothing that depends on how many there are.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "io/test_folder.h"
#include "text/dataset_stream.h"

namespace tenon {
namespace {

// In use by malloc, that is not in mapped files.
int64_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

struct HeapUse {
  int64_t opened = 0;    // more than before the file was opened
  int64_t streamed = 0;  // the most above that while an epoch streams past
};

HeapUse heap_use(const std::string& path, const Tokenizer& tokenizer) {
  HeapUse use;
  const int64_t before = heap_bytes();
  const auto dataset = Dataset::open(path);
  EXPECT_TRUE(dataset.ok());
  use.opened = heap_bytes() - before;
  StreamSettings settings;
  settings.rows.tokens = {&tokenizer, 256, TooLong::error};
  settings.tokens_per_step = 256;
  auto stream = DataStream::open(*dataset, settings);
  EXPECT_TRUE(stream.ok());
  bool epoch_end = false;
  while (!epoch_end) {
    const auto batch = stream->next();
    if (!batch.ok()) {
      ADD_FAILURE() << batch.error().text();
      break;
    }
    epoch_end = batch->epoch_end;
    use.streamed = std::max(use.streamed, heap_bytes() - before - use.opened);
  }
  return use;
}

TEST(DataMemory, StreamingHoldsNothingThatGrowsWithTheRows) {
  if (heap_bytes() == 0) GTEST_SKIP() << "another allocator than glibc's";
  const auto tokenizer =
      Tokenizer::from_file(std::filesystem::path(TENON_SOURCE_DIR) / "tests/text/tiny_bytes");
  ASSERT_TRUE(tokenizer.ok());
  {
    const int64_t before = heap_bytes();
    const std::string probe(1 << 20, 'x');
    ASSERT_GE(heap_bytes() - before, std::ssize(probe)) << "the measure sees nothing";
  }
  const TestFolder folder;
  constexpr int64_t kFew = 500, kMany = 16 * kFew;
  const std::string row =
      R"({"prompt":")" + std::string(100, 'q') + R"(","completion":")" + std::string(50, 'a') + "\"}\n";
  std::string few, many;
  for (int64_t i = 0; i < kMany; ++i) (i < kFew ? few : many) += row;
  many += few;
  folder.put("few.jsonl", few);
  folder.put("many.jsonl", many);
  (void)heap_use(folder / "few.jsonl", *tokenizer);  // what is made once, such as caches
  const HeapUse small = heap_use(folder / "few.jsonl", *tokenizer);
  const HeapUse large = heap_use(folder / "many.jsonl", *tokenizer);
  EXPECT_GE(large.opened, 8 * kMany);
  EXPECT_LE(large.opened - small.opened, 16 * kMany + 4096);
  EXPECT_LE(large.streamed, small.streamed + 32 * 1024);
}

}  // namespace
}  // namespace tenon
