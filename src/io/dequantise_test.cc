#include "io/dequantise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/half.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"

namespace tenon {
namespace {

// tests/io/quant_goldens.safetensors, from tools/make_quant_goldens.py: the Python package gguf.
class Goldens {
 public:
  Goldens() : file_(*MappedFile::open(TENON_SOURCE_DIR "/tests/io/quant_goldens.safetensors")) {
    header_ = *parse_safetensors(file_.bytes());
  }
  std::span<const std::byte> bytes(std::string_view name) const {
    for (const TensorEntry& entry : header_.tensors) {
      if (entry.name == name)
        return file_.bytes().subspan(static_cast<size_t>(entry.offset_bytes),
                                     static_cast<size_t>(entry.size_bytes));
    }
    ADD_FAILURE() << "no golden " << name;
    return {};
  }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

constexpr DType kBlockTypes[] = {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0,
                                 DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k};

TEST(Dequantise, BlockTypesEqualTheReferenceBitForBit) {
  const Goldens goldens;
  for (const DType dtype : kBlockTypes) {
    const std::string name(dtype_name(dtype));
    const auto blocks = goldens.bytes(name + ".blocks");
    const auto expected = goldens.bytes(name + ".values");
    std::vector<float> values(expected.size() / sizeof(float));
    ASSERT_EQ(static_cast<int64_t>(blocks.size()), *dtype_bytes(dtype, static_cast<int64_t>(values.size())));
    dequantise_row(dtype, blocks.data(), values.data(), static_cast<int64_t>(values.size()));
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size()), 0) << name;

    // One odd address further: rows in a file need not be aligned.
    std::vector<std::byte> shifted(blocks.size() + 1);
    std::memcpy(shifted.data() + 1, blocks.data(), blocks.size());
    std::vector<float> again(values.size());
    dequantise_row(dtype, shifted.data() + 1, again.data(), static_cast<int64_t>(again.size()));
    EXPECT_EQ(std::memcmp(again.data(), expected.data(), expected.size()), 0) << name;
  }
}

TEST(Dequantise, EveryHalfPattern) {
  std::vector<uint16_t> bits(0x10000);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> values(bits.size());
  const auto* src = reinterpret_cast<const std::byte*>(bits.data());
  dequantise_row(DType::f16, src, values.data(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < bits.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(f16_to_f32(bits[i]))) << i;
  dequantise_row(DType::bf16, src, values.data(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < bits.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), static_cast<uint32_t>(i) << 16) << i;
}

TEST(Dequantise, PlainFloats) {
  const double wide[] = {0.1, -1e300, 1.0 + 0x1p-24};
  float values[3];
  dequantise_row(DType::f64, reinterpret_cast<const std::byte*>(wide), values, 3);
  EXPECT_EQ(values[0], 0.1f);
  EXPECT_EQ(values[1], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(values[2], 1.0f);
  const float plain[] = {1.5f, -0.0f, 3e-45f};
  dequantise_row(DType::f32, reinterpret_cast<const std::byte*>(plain), values, 3);
  EXPECT_EQ(std::memcmp(plain, values, sizeof(plain)), 0);
}

TEST(Quantise, EqualsTheReferenceBitForBit) {
  const Goldens goldens;
  const auto source = goldens.bytes("quantise.rows");
  std::vector<float> rows(source.size() / sizeof(float));
  std::memcpy(rows.data(), source.data(), source.size());
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_1}) {
    const auto expected = goldens.bytes("quantise." + std::string(dtype_name(dtype)));
    std::vector<std::byte> blocks(expected.size());
    ASSERT_EQ(static_cast<int64_t>(blocks.size()), *dtype_bytes(dtype, static_cast<int64_t>(rows.size())));
    quantise_row(dtype, rows.data(), blocks.data(), static_cast<int64_t>(rows.size()));
    EXPECT_EQ(std::memcmp(blocks.data(), expected.data(), expected.size()), 0) << dtype_name(dtype);
  }
}

TEST(Quantise, RoundTripsWithinHalfAStep) {
  std::vector<float> row(64);
  for (size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i) * 1.7f);
  for (const auto& [dtype, bound] :
       {std::pair(DType::q8_0, 0.006f), std::pair(DType::q4_0, 0.13f), std::pair(DType::q4_1, 0.07f),
        std::pair(DType::f16, 3e-4f), std::pair(DType::bf16, 2e-3f), std::pair(DType::f32, 0.0f)}) {
    std::vector<std::byte> stored(static_cast<size_t>(*dtype_bytes(dtype, 64)));
    std::vector<float> back(64);
    quantise_row(dtype, row.data(), stored.data(), 64);
    dequantise_row(dtype, stored.data(), back.data(), 64);
    for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(back[i], row[i], bound) << dtype_name(dtype) << i;
  }
}

TEST(Quantise, NonFiniteValuesStayDefined) {
  std::vector<float> row(32, 1.0f);
  row[3] = std::numeric_limits<float>::quiet_NaN();
  row[4] = std::numeric_limits<float>::infinity();
  std::vector<std::byte> stored(40);
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_1})
    quantise_row(dtype, row.data(), stored.data(), 32);  // the sanitizers watch
}

TEST(Quantise, SaysWhatItCan) {
  EXPECT_TRUE(can_dequantise(DType::q3_k));
  EXPECT_TRUE(can_dequantise(DType::f64));
  EXPECT_FALSE(can_dequantise(DType::i32));
  EXPECT_TRUE(can_quantise(DType::q4_1));
  EXPECT_FALSE(can_quantise(DType::q4_k));
}

}  // namespace
}  // namespace tenon
