// What the tests of the whole share: reading tensors that a probe wrote, and distances between them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon {

struct TensorFile {
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, std::vector<int32_t>> integers;
};

// Every f32 and i32 tensor of a safetensors file; a failed expectation and nothing where it cannot be read.
TensorFile read_tensors(const std::string& path);

double norm(const std::vector<float>& x);

// Norm of the difference over norm of the reference plus `floor`.
double distance(const std::vector<float>& got, const std::vector<float>& want, double floor = 0);

}  // namespace tenon
