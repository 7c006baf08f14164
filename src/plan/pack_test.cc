#include "plan/pack.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace tenon {
namespace {

// No two blocks that are alive together overlap. Quadratic, as plain as it can be.
void expect_disjoint(const std::vector<PackBlock>& blocks, const Packing& packing) {
  int64_t peak = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_GE(packing.offsets[i], 0);
    peak = std::max(peak, packing.offsets[i] + blocks[i].bytes);
    for (size_t j = 0; j < i; ++j) {
      if (blocks[i].last < blocks[j].first || blocks[j].last < blocks[i].first) continue;
      ASSERT_TRUE(packing.offsets[i] + blocks[i].bytes <= packing.offsets[j] ||
                  packing.offsets[j] + blocks[j].bytes <= packing.offsets[i])
          << i << " and " << j;
    }
  }
  EXPECT_EQ(packing.peak_bytes, peak);
}

TEST(Pack, ExampleByHand) {
  // step    0    1    2    3
  // a 128   x    x              0..128
  // b  64        x    x         128..192
  // c 128             x    x    0..128, where a was
  // d  64                  x    128..192, where b was
  const std::vector<PackBlock> blocks{{128, 0, 1}, {64, 1, 2}, {128, 2, 3}, {64, 3, 3}};
  const MostLive most = most_live(blocks);
  EXPECT_EQ(most.bytes, 192);
  EXPECT_EQ(most.step, 1);
  const Packing packing = pack_blocks(blocks);
  EXPECT_EQ(packing.peak_bytes, 192);
  EXPECT_EQ(packing.offsets, (std::vector<int64_t>{0, 128, 0, 128}));
  EXPECT_EQ(pack_without_reuse(blocks).peak_bytes, 384);
}

TEST(Pack, NothingAndEmptyBlocks) {
  EXPECT_EQ(pack_blocks({}).peak_bytes, 0);
  const std::vector<PackBlock> blocks{{0, 0, 5}, {64, 1, 1}, {0, 1, 1}};
  EXPECT_EQ(pack_blocks(blocks).peak_bytes, 64);
}

// Forward values are kept and read backward in reverse order: lifetimes nest, and the bound is reached.
TEST(Pack, NestedLivesReachTheBound) {
  std::vector<PackBlock> blocks;
  for (int32_t i = 0; i < 100; ++i) {
    blocks.push_back({64 * (1 + i * 7 % 13), i, 200 - i});
    blocks.push_back({64 * (1 + i % 5), i, i});
  }
  const Packing packing = pack_blocks(blocks);
  expect_disjoint(blocks, packing);
  EXPECT_EQ(packing.peak_bytes, most_live(blocks).bytes);
}

std::vector<PackBlock> random_blocks(uint32_t seed, int count, int32_t steps, int32_t longest) {
  std::mt19937 random(seed);
  std::vector<PackBlock> blocks;
  for (int i = 0; i < count; ++i) {
    const auto first = static_cast<int32_t>(random() % steps);
    const auto life = static_cast<int32_t>(random() % (random() % 8 ? 4 : longest));
    blocks.push_back({static_cast<int64_t>(random() % 40) * 64, first, std::min(steps - 1, first + life)});
  }
  return blocks;
}

TEST(Pack, RandomBlocksNeverOverlapAndStayNearTheBound) {
  double worst = 1;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const auto blocks = random_blocks(seed, 20 + static_cast<int>(seed), 10 + static_cast<int32_t>(seed), 60);
    const Packing packing = pack_blocks(blocks);
    expect_disjoint(blocks, packing);
    EXPECT_EQ(packing.offsets, pack_blocks(blocks).offsets);
    const int64_t bound = most_live(blocks).bytes;
    ASSERT_GE(packing.peak_bytes, bound);
    worst = std::max(worst, static_cast<double>(packing.peak_bytes) / static_cast<double>(bound));
  }
  RecordProperty("worst_peak_over_bound", std::to_string(worst));
  EXPECT_LT(worst, 1.06);
}

TEST(Pack, ALargeProgramTakesTheFastWay) {
  const auto blocks = random_blocks(1, 200'000, 100'000, 20'000);
  const auto start = std::chrono::steady_clock::now();
  const Packing packing = pack_blocks(blocks);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const auto bound = static_cast<double>(most_live(blocks).bytes);
  EXPECT_LT(static_cast<double>(packing.peak_bytes), 1.2 * bound);
  EXPECT_LT(seconds.count(), 10.0);  // a second on an idle machine; a quadratic way takes minutes
}

}  // namespace
}  // namespace tenon
