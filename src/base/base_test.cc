#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/shape.h"
#include "base/threads.h"

namespace tenon {
namespace {

Result<int> half_of(int value) {
  if (value % 2) return bad_argument("odd", "value");
  return value / 2;
}

Result<int> quarter_of(int value) {
  ASSIGN_OR_RETURN(const int half, half_of(value));
  return half_of(half);
}

TEST(Error, PropagatesWithSubjectAndHint) {
  EXPECT_EQ(*quarter_of(8), 2);
  EXPECT_EQ(quarter_of(6).error().text(), "value: odd");
  EXPECT_EQ(bad_file("cut short", "a.gguf", "Download it again.").within("model").text(),
            "model: a.gguf: cut short\n  Download it again.");
}

TEST(Half, F16RoundTripsEveryPattern) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(f32_to_f16(value), bits);
  }
}

TEST(Half, NarrowingRoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.00390625f), 0x3f80);  // half way, to even
  EXPECT_EQ(f32_to_bf16(1.01171875f), 0x3f82);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);  // half of the smallest subnormal, to even
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 0x0001);
}

TEST(DType, SizesAreWholeBlocks) {
  EXPECT_EQ(dtype_bytes(DType::q4_1, 64), 40);
  EXPECT_FALSE(dtype_bytes(DType::q4_1, 33));
  EXPECT_FALSE(dtype_bytes(DType::f32, std::numeric_limits<int64_t>::max() / 2));
  EXPECT_EQ(dtype_from_name("q6_k"), DType::q6_k);
}

TEST(Shape, ElementsOverflowIsNoticed) {
  EXPECT_EQ(Shape({2, 3}).elements(), 6);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_FALSE(Shape({int64_t{1} << 32, int64_t{1} << 32}).checked_elements());
  EXPECT_EQ(Shape({4, 5, 6}).rows(), 20);
  EXPECT_EQ(Shape({4, 5, 6}).text(), "[4, 5, 6]");
}

TEST(Threads, EveryIndexOnce) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 7, 64, 1001}) {
      std::vector<int> hits(count, 0);
      for (int repeat = 0; repeat < 50; ++repeat) {
        pool.parallel_for(count, 8, [&](Range range) {
          for (int64_t i = range.begin; i < range.end; ++i) ++hits[i];
        });
      }
      for (int hit : hits) EXPECT_EQ(hit, 50);
    }
  }
}

}  // namespace
}  // namespace tenon
