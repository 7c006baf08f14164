// Loading by a GPU, or an emulated one: where parts of stored tensors go, in chunks, and what is noted of
// them.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "backend/cuda/cuda_device.h"
#include "tests/loading_fixture.h"

namespace tenon {
namespace {

class Loading : public LoadingTest {
 protected:
  void SetUp() override {
    auto opened = open_cuda_device({});
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    device = std::move(opened).value();
  }
};

TEST_F(Loading, PlacesPartsOfRowsAndColumns) {
  const Bytes stored = bytes_of({0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33});
  std::vector<StoredPart> parts(2, part_of(stored, DType::f32, 4));
  // Rows 1 and 3, columns 1 and 2, to the left; columns 0 and 2 of rows 2 and 3, turned, below.
  parts[0].from_row = 1, parts[0].row_stride = 2, parts[0].rows = 2;
  parts[0].from_column = 1, parts[0].columns = 2, parts[0].to_row = 3;
  parts[1].from_row = 2, parts[1].rows = 2, parts[1].columns = 2, parts[1].column_stride = 2;
  parts[1].to = 7, parts[1].to_row = 1, parts[1].to_column = 3;
  EXPECT_TRUE(loaded(parts, {DType::f32, Shape{4, 3}}) ==
              bytes_of({11, 12, 0, 31, 32, 0, 0, 20, 30, 0, 22, 32}));
}

TEST_F(Loading, PutsRotaryRowsBackWhateverTheirType) {
  Bytes stored;
  for (int row : {0, 2, 1, 3, 4, 6, 5, 7}) stored.insert(stored.end(), 34, static_cast<std::byte>(row));
  StoredPart part = part_of(stored, DType::q8_0, 32);
  part.head_rows = 4;
  part.unchanged = true;
  Bytes want;
  for (int row = 0; row < 8; ++row) want.insert(want.end(), 34, static_cast<std::byte>(row));
  EXPECT_TRUE(loaded({&part, 1}, {DType::q8_0, Shape{8, 32}}) == want);
}

// The values of OCP's OFP8 and MX tables.
TEST_F(Loading, NarrowFloatsAndTheirScales) {
  const auto bytes = [](std::initializer_list<int> values) {
    Bytes out;
    for (int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
  };
  const Bytes e4m3 = bytes({0x00, 0x01, 0x07, 0x08, 0x38, 0xb8, 0x7e, 0xc0});
  StoredPart part = part_of(e4m3, DType::u8, 8);
  part.code = StoredCode::f8_e4m3;
  EXPECT_TRUE(loaded({&part, 1}, {DType::f32, Shape{8}}) ==
              bytes_of({0, 0x1p-9f, 7 * 0x1p-9f, 0x1p-6f, 1, -1, 448, -2}));
  const Bytes factors = bytes_of({0.5f, 2.0f});
  part.scales.data = factors.data();
  part.scales.scale_bytes = 4, part.scales.columns = 4, part.scales.grid_columns = 2;
  EXPECT_TRUE(loaded({&part, 1}, {DType::f32, Shape{8}}) ==
              bytes_of({0, 0x1p-10f, 7 * 0x1p-10f, 0x1p-7f, 2, -2, 896, -4}));
  const Bytes e5m2 = bytes({0x01, 0x04, 0x3c, 0xbe, 0x7b, 0, 0, 0});
  part = part_of(e5m2, DType::u8, 8);
  part.code = StoredCode::f8_e5m2;
  EXPECT_TRUE(loaded({&part, 1}, {DType::f32, Shape{8}}) ==
              bytes_of({0x1p-16f, 0x1p-14f, 1, -1.5f, 57344, 0, 0, 0}));
  Bytes pairs(16, std::byte{0});
  for (int i = 0; i < 8; ++i)
    pairs[static_cast<size_t>(i)] = static_cast<std::byte>(2 * i | (2 * i + 1) << 4);
  const Bytes power = bytes({0x80});
  part = part_of(pairs, DType::u8, 32);
  part.row_bytes = 16, part.rows = 1, part.code = StoredCode::mxfp4;
  part.scales.data = power.data();
  part.scales.code = StoredCode::f8_e8m0, part.scales.scale_bytes = 1, part.scales.columns = 32;
  std::vector<float> want{0, 1, 2, 3, 4, 6, 8, 12, -0.0f, -1, -2, -3, -4, -6, -8, -12};
  want.resize(32, 0.0f);
  EXPECT_TRUE(loaded({&part, 1}, {DType::f32, Shape{32}}) == bytes_of(want));
}

TEST_F(Loading, ARowLargerThanAChunk) {
  std::vector<float> values(1 << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Bytes stored = bytes_of(values);
  StoredPart part = part_of(stored, DType::f32, 1 << 20);
  EXPECT_TRUE(loaded({&part, 1}, {DType::f32, Shape{1 << 20}}) == stored);
  part.columns = 1 << 19, part.column_stride = 2, part.from_column = 1;
  std::vector<float> odd(1 << 19);
  for (size_t i = 0; i < odd.size(); ++i) odd[i] = static_cast<float>(2 * i + 1);
  EXPECT_TRUE(loaded({&part, 1}, {DType::f32, Shape{1 << 19}}) == bytes_of(odd));
}

TEST_F(Loading, NamesTheFirstValueThatIsNotFinite) {
  std::vector<float> values(64 * 1024, 1.0f);
  values[50'000] = NAN;
  values[20'005] = -INFINITY;
  const Bytes stored = bytes_of(values);
  const StoredPart part = part_of(stored, DType::f32, 1024);
  loaded({&part, 1}, {DType::bf16, Shape{64, 1024}});
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->load, 0);
  EXPECT_EQ(bad->element, 20'005);
  const StoredPart fine = part_of(stored, DType::f32, 1024);
  StoredPart before = fine;
  before.rows = 10;
  loaded({&before, 1}, {DType::bf16, Shape{10, 1024}});
  EXPECT_FALSE(bad.has_value());
}

}  // namespace
}  // namespace tenon
