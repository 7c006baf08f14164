// Weights with scales beside them against what torch and transformers make of the same bytes
// (tools/make_scaled_goldens.py).
#include "models/stored_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "io/dequantise.h"
#include "io/gguf_writer.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "io/test_folder.h"

namespace tenon {
namespace {

const std::string kRoot = TENON_SOURCE_DIR "/tests/models/scaled/";

std::vector<float> expected(const std::string& name, Shape& shape) {
  const auto file = MappedFile::open(kRoot + "values.safetensors");
  const auto header = parse_safetensors(file->bytes());
  for (const TensorEntry& tensor : header->tensors) {
    if (tensor.name != name) continue;
    shape = tensor.shape;
    std::vector<float> out(static_cast<size_t>(shape.elements()));
    std::memcpy(out.data(), file->bytes().data() + tensor.offset_bytes, out.size() * sizeof(float));
    return out;
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

SourceBlock block_of(const std::string& tensor) {
  SourceBlock block;
  block.tensor = tensor;
  return block;
}

constexpr StoredQuantisation kBlocks{.method = "fp8", .block_rows = 8, .block_columns = 16};

void expect_values(const std::string& folder, const std::string& name,
                   const StoredQuantisation& quantisation) {
  const auto checkpoint = Checkpoint::open(kRoot + folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().text();
  SourceBlock block = block_of(name);
  const auto found = find_stored(*checkpoint, quantisation, block);
  ASSERT_TRUE(found.ok()) << found.error().text();
  ASSERT_TRUE(*found);
  Shape shape;
  const std::vector<float> want = expected(name, shape);
  EXPECT_EQ(block.stored_shape, shape);
  EXPECT_EQ(block.form, StoredForm::float8);
  const size_t columns = static_cast<size_t>(shape[-1]);
  std::vector<float> row(columns);
  for (size_t r = 0; r < want.size() / columns; ++r) {
    read_stored_row(*checkpoint, block, static_cast<int64_t>(r), row.data());
    for (size_t i = 0; i < columns; ++i)
      EXPECT_EQ(row[i], want[r * columns + i]) << name << " " << r << " " << i;
  }
}

TEST(StoredValues, EightBitFloatsAreThoseOfTorch) {
  expect_values("blocks", "e4m3.weight", kBlocks);
  expect_values("blocks", "e5m2.weight", kBlocks);
}

TEST(StoredValues, ScalesServeBlocksRowsOrAll) {
  expect_values("blocks", "blocks.weight", kBlocks);
  expect_values("blocks", "powers.weight", kBlocks);
  expect_values("blocks", "whole.weight", kBlocks);
  expect_values("rows", "channel.weight", {.method = "fp8"});
}

TEST(StoredValues, StackedMatricesHaveScalesOfTheirOwn) {
  expect_values("blocks", "stacked", kBlocks);
}

// transformers keeps gpt-oss' experts as [experts, in, out]; their MXFP4 form is [experts, out, in].
TEST(StoredValues, Mxfp4IsTurnedRound) {
  const auto checkpoint = Checkpoint::open(kRoot + "blocks");
  ASSERT_TRUE(checkpoint.ok());
  Shape shape;
  const std::vector<float> want = expected("experts.down_proj", shape);
  const int64_t in = shape[1], out = shape[2];
  for (int64_t expert = 0; expert < shape[0]; ++expert) {
    for (int64_t half = 0; half < 2; ++half) {
      SourceBlock block = block_of("experts.down_proj");
      block.transposed = true;
      block.rows = out / 2;
      block.columns = in;
      block.from_row = expert * in;
      block.from_column = half;
      block.stride = 2;
      const auto found = find_stored(*checkpoint, {.method = "mxfp4"}, block);
      ASSERT_TRUE(found.ok()) << found.error().text();
      EXPECT_FALSE(block.transposed);
      EXPECT_EQ(block.stored_shape, (Shape{shape[0], out, in}));
      std::vector<float> row(static_cast<size_t>(in));
      for (int64_t i = 0; i < block.rows; ++i) {
        read_stored_row(*checkpoint, block, block.from_row + i * block.stride, row.data());
        for (int64_t j = 0; j < in; ++j) {
          const size_t at = static_cast<size_t>((expert * in + j) * out + half + 2 * i);
          EXPECT_EQ(row[static_cast<size_t>(block.from_column + j)], want[at])
              << expert << " " << i << " " << j;
        }
      }
    }
  }
}

TEST(StoredValues, ScalesThatDoNotFitAreRefused) {
  const auto checkpoint = Checkpoint::open(kRoot + "blocks");
  ASSERT_TRUE(checkpoint.ok());
  SourceBlock block = block_of("blocks.weight");
  const auto found = find_stored(*checkpoint, {.method = "fp8", .block_rows = 4, .block_columns = 16}, block);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().text().find("does not fit"), std::string::npos) << found.error().text();
  SourceBlock none = block_of("nothing.weight");
  EXPECT_FALSE(*find_stored(*checkpoint, kBlocks, none));
}

TEST(StoredValues, ColumnsOfABlockAreThoseOfTheWholeRow) {
  const TestFolder folder;
  constexpr int64_t kRows = 2, kColumns = 128;
  std::vector<float> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 37) - 18;
  std::vector<std::byte> bytes(static_cast<size_t>(*dtype_bytes(DType::q8_0, kRows * kColumns)));
  quantise_row(DType::q8_0, values.data(), bytes.data(), kRows * kColumns);
  const std::string path = folder / "m.gguf";
  auto writer = create_gguf(path, {}, std::vector<TensorSpec>{{"w", DType::q8_0, Shape{kRows, kColumns}}});
  ASSERT_TRUE(writer.ok()) << writer.error().text();
  ASSERT_TRUE(writer->append("w", bytes).ok() && writer->commit().ok());
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().text();
  std::vector<float> whole(kColumns), part(kColumns);
  for (const auto& [from, columns] : {std::pair{0, 16}, {16, 48}, {40, 88}, {96, 32}, {0, 128}}) {
    SourceBlock block = block_of("w");
    ASSERT_TRUE(*find_stored(*checkpoint, {}, block));
    block.from_column = from;
    block.columns = columns;
    for (int64_t row = 0; row < kRows; ++row) {
      read_stored_row(*checkpoint, block, row, whole.data());
      const float* got = read_block_columns(*checkpoint, block, row, part.data());
      for (int64_t i = 0; i < columns; ++i) EXPECT_EQ(got[i], whole[static_cast<size_t>(from + i)]) << from;
    }
  }
}

}  // namespace
}  // namespace tenon
