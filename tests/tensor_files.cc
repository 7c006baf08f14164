#include "tests/tensor_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "io/mapped_file.h"
#include "io/safetensors.h"

namespace tenon {

TensorFile read_tensors(const std::string& path) {
  TensorFile out;
  const auto file = MappedFile::open(path);
  EXPECT_TRUE(file.ok()) << path;
  if (!file.ok()) return out;
  const auto header = parse_safetensors(file->bytes());
  EXPECT_TRUE(header.ok()) << path;
  if (!header.ok()) return out;
  for (const TensorEntry& tensor : header->tensors) {
    const std::byte* from = file->bytes().data() + tensor.offset_bytes;
    const size_t count = static_cast<size_t>(tensor.shape.elements());
    if (tensor.dtype == DType::f32) {
      std::memcpy((out.floats[tensor.name] = std::vector<float>(count)).data(), from, count * 4);
    } else if (tensor.dtype == DType::i32) {
      std::memcpy((out.integers[tensor.name] = std::vector<int32_t>(count)).data(), from, count * 4);
    }
  }
  return out;
}

double norm(const std::vector<float>& x) {
  double sum = 0;
  for (float v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

double distance(const std::vector<float>& got, const std::vector<float>& want, double floor) {
  EXPECT_EQ(got.size(), want.size());
  double sum = 0;
  for (size_t i = 0; i < want.size() && i < got.size(); ++i) sum += std::pow(double{got[i]} - want[i], 2);
  return std::sqrt(sum) / (norm(want) + floor);
}

}  // namespace tenon
