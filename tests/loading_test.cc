// Weights that a GPU loads and converts by itself are, to the bit, those that load_weight() makes on the
// host, whose values have tests of their own (models/stored_values_test.cc, io/dequantise_test.cc, the
// goldens).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "io/dequantise.h"
#include "models/weight_parts.h"
#include "run/model.h"
#include "tests/golden_reference.h"
#include "tests/loading_fixture.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

class Loading : public LoadingTest {
 protected:
  void SetUp() override {
    DeviceArguments arguments;
    arguments.device = "cuda";
    auto opened = open_device(arguments);
    if (!opened.ok()) GTEST_SKIP() << opened.error().text();
    device = std::move(opened).value();
  }

  void expect_as_on_host(const Checkpoint& checkpoint, const WeightSource& source, DType dtype) {
    const Type type{dtype, source.shape};
    Bytes want(static_cast<size_t>(type.bytes()));
    ASSERT_TRUE(load_weight(checkpoint, source, dtype, want).ok());
    EXPECT_TRUE(loaded(weight_parts(checkpoint, source, dtype), type) == want)
        << checkpoint.path() << ": " << source.name << " as " << dtype_name(dtype);
    EXPECT_FALSE(bad.has_value());
  }
};

std::vector<float> floats_of(const Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST_F(Loading, EveryFamilyIsAsOnTheHost) {
  int weights = 0;
  for (const auto& [name, path] : packed_goldens()) {
    const auto model = open_model(open_golden(path).folder);
    if (!model.ok()) continue;
    for (const WeightSource& source : model->weights.sources) {
      expect_as_on_host(model->checkpoint, source, DType::bf16);
      ++weights;
    }
  }
  EXPECT_GT(weights, 1000);
}

TEST_F(Loading, ValuesWithScalesBeside) {
  const std::string folder = source_tree() + "/tests/models/scaled/";
  const StoredQuantisation kBlocks{.method = "fp8", .block_rows = 8, .block_columns = 16};
  for (const auto& [where, name] :
       std::vector<std::pair<std::string, std::string>>{{"blocks", "e4m3.weight"},
                                                        {"blocks", "e5m2.weight"},
                                                        {"blocks", "blocks.weight"},
                                                        {"blocks", "powers.weight"},
                                                        {"blocks", "whole.weight"},
                                                        {"blocks", "stacked"},
                                                        {"rows", "channel.weight"}}) {
    const auto checkpoint = Checkpoint::open(folder + where);
    ASSERT_TRUE(checkpoint.ok());
    SourceBlock block;
    block.tensor = name;
    ASSERT_TRUE(
        *find_stored(*checkpoint, where == "rows" ? StoredQuantisation{.method = "fp8"} : kBlocks, block));
    const Shape& shape = block.stored_shape;
    block.rows = shape.elements() / shape[-1], block.columns = shape[-1];
    expect_as_on_host(*checkpoint, {name, shape, {block}}, DType::f32);
    block.from_row = 1, block.from_column = 3, block.rows -= 1, block.columns -= 5;
    expect_as_on_host(*checkpoint, {name, Shape{block.rows, block.columns}, {block}}, DType::bf16);
  }
}

TEST_F(Loading, Mxfp4IsTurnedRound) {
  const auto checkpoint = Checkpoint::open(source_tree() + "/tests/models/scaled/blocks");
  ASSERT_TRUE(checkpoint.ok());
  const CheckpointTensor& blocks = *checkpoint->find("experts.down_proj_blocks");
  const int64_t out = blocks.shape[1], in = blocks.shape[2] * 32;
  for (int64_t half = 0; half < 2; ++half) {
    SourceBlock block;
    block.tensor = "experts.down_proj";
    block.transposed = true;
    block.rows = out / 2, block.columns = in, block.from_row = in, block.from_column = half, block.stride = 2;
    ASSERT_TRUE(*find_stored(*checkpoint, {.method = "mxfp4"}, block));
    expect_as_on_host(*checkpoint, {"half", Shape{out / 2, in}, {block}}, DType::f32);
  }
}

TEST_F(Loading, EveryStoredTypeInManyChunks) {
  constexpr int64_t kRows = 37, kColumns = 1024;
  std::mt19937 random(5);
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::q4_0, DType::q4_1, DType::q5_0,
                      DType::q5_1, DType::q8_0, DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k,
                      DType::q6_k, DType::i64, DType::i32}) {
    Bytes stored(static_cast<size_t>(*dtype_bytes(dtype, kRows * kColumns)));
    // Bytes below 0x20 make small numbers of every type, scales included.
    for (std::byte& byte : stored) byte = static_cast<std::byte>(random() % 0x20);
    std::vector<float> want(kRows * kColumns);
    dequantise_row(dtype, stored.data(), want.data(), kRows * kColumns);
    StoredPart part = part_of(stored, dtype, kColumns);
    // As numbers: where a block's scale is 0, zeros differ in their sign.
    EXPECT_TRUE(floats_of(loaded({&part, 1}, {DType::f32, Shape{kRows, kColumns}})) == want)
        << dtype_name(dtype);
    part.unchanged = true;
    EXPECT_TRUE(loaded({&part, 1}, {dtype, Shape{kRows, kColumns}}) == stored) << dtype_name(dtype);
  }
}

TEST_F(Loading, QuantisesAsGgmlDoes) {
  constexpr int64_t kRows = 9, kColumns = 2048;
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<float> values(kRows * kColumns);
  for (float& value : values) value = normal(random);
  std::fill_n(values.begin() + 64, 32, 0.0f);
  Bytes want(static_cast<size_t>(*dtype_bytes(DType::q8_0, kRows * kColumns)));
  quantise_row(DType::q8_0, values.data(), want.data(), kRows * kColumns);
  const Bytes stored = bytes_of(values);
  const StoredPart part = part_of(stored, DType::f32, kColumns);
  EXPECT_TRUE(loaded({&part, 1}, {DType::q8_0, Shape{kRows, kColumns}}) == want);
}

}  // namespace
}  // namespace tenon
