// What a golden family says, from either form: the folder as transformers and peft left it, or the packed
// file of tools/pack_goldens.py, whose weights are small integers and which keeps, of logits and gradients,
// the norm and fixed random projections.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/tensor_files.h"

namespace tenon {

// The tree whose tests/ and ../shared are read: TENON_TEST_TREE, or the one that this was built from.
std::string source_tree();

// What is asked of a family; tests/golden_supported.txt explains it.
struct Demands {
  double train_loss = 1e-4;
  double bf16_loss = 0;     // where bf16 does not hold the curve, nor small gradients
  double bf16_grad = 0.75;  // of the gradient as a whole, where bf16 only stays near
  double grad = 0;          // where float32 asks for more than the golden's tolerance
};

// Families that must pass: a regression fails by name.
std::map<std::string, Demands> supported_families();

// Full folders (../shared/golden, tests/golden) or packed files (tests/golden_packed), by name.
std::map<std::string, std::string> full_goldens();
std::map<std::string, std::string> packed_goldens();

// "llama" of either path.
std::string golden_name(const std::string& path);

struct GoldenReference {
  std::string folder;  // the model, with adapter/ in it
  std::string tokens;  // safetensors with input_ids and labels
  Json facts;
  TensorFile values;  // floats: whole, or norm and projections
  bool projected = false;

  // Norm of a tensor, and norm of its difference from `got` (of projected ones, an estimate).
  double norm_of(const std::string& name) const;
  double difference(const std::string& name, const std::vector<float>& got) const;
  double distance(const std::string& name, const std::vector<float>& got, double floor = 0) const {
    return difference(name, got) / (norm_of(name) + floor);
  }
  // How much an estimated distance may be above the true one.
  double slack() const { return projected ? 1.6 : 1; }
};

// A packed file is put into scratch_folder(). A failed expectation where it cannot be read.
GoldenReference open_golden(const std::string& path);

}  // namespace tenon
