#include "backend/cpu/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/cpu_target.h"
#include "base/half.h"

namespace tenon {
namespace {

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

class Convert : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_cpu_target(GetParam()); }
  void TearDown() override { use_cpu_target(""); }
};

TEST_P(Convert, BlocksDecodeToTheSameBitsAsThePythonPackage) {
  std::ifstream file(TENON_SOURCE_DIR "/tests/backend/block_goldens.txt");
  int dtypes = 0;
  for (std::string name, blocks, floats; file >> name >> blocks >> floats; ++dtypes) {
    const auto dtype = dtype_from_name(name);
    ASSERT_TRUE(dtype.has_value()) << name;
    const std::vector<std::byte> bytes = from_hex(blocks), expected = from_hex(floats);
    std::vector<float> values(expected.size() / 4);
    widen_to_f32(*dtype, bytes.data(), 0, static_cast<int64_t>(values.size()), values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      float wanted;
      std::memcpy(&wanted, expected.data() + i * 4, 4);
      ASSERT_EQ(values[i], wanted) << name << "[" << i << "]";
    }
  }
  EXPECT_EQ(dtypes, 10);
}

TEST_P(Convert, HalvesAgreeWithTheirDefinition) {
  std::vector<uint16_t> bits(0x10000);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> values(bits.size());
  const auto* data = reinterpret_cast<const std::byte*>(bits.data());
  widen_to_f32(DType::bf16, data, 0, 0x10000, values.data());
  for (uint16_t b : bits) {
    ASSERT_EQ(std::bit_cast<uint32_t>(values[b]), std::bit_cast<uint32_t>(bf16_to_f32(b)));
  }
  widen_to_f32(DType::f16, data, 0, 0x10000, values.data());
  for (uint16_t b : bits) {
    const float expected = f16_to_f32(b);
    if (!std::isnan(expected)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(values[b]), std::bit_cast<uint32_t>(expected));
    }
  }
}

TEST_P(Convert, RoundingToHalvesAgreesWithItsDefinition) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0xffff0000u; bits += 0x10001u * 5 + 0x1234u) {
    values.push_back(std::bit_cast<float>(bits));
  }
  for (float special : {1.00390625f, 1.01171875f, 3.4e38f, -0.0f, std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()}) {
    values.push_back(special);
  }
  std::vector<uint16_t> rounded(values.size());
  round_from_f32(DType::bf16, values.data(), static_cast<int64_t>(values.size()),
                 reinterpret_cast<std::byte*>(rounded.data()));
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(rounded[i], f32_to_bf16(values[i])) << values[i];
}

INSTANTIATE_TEST_SUITE_P(Targets, Convert, testing::ValuesIn(cpu_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tenon
