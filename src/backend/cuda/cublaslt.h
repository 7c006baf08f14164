// cuBLASLt, loaded when a device is opened: the program starts on machines without it.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/cuda/gemm.h"
#include "base/error.h"

namespace tenon::cuda {

// Loads the library and makes its handle, once. Fails with what to install.
Status load_cublaslt();
// Its version as "13.1.0", empty before load_cublaslt().
std::string cublaslt_version();

struct LtArguments {
  const std::byte *a, *b;
  const std::byte* c;    // the matrix that is added, or null
  const std::byte* row;  // the row that is added, or null
  std::byte* out;
  float alpha;
  std::byte* workspace;
  void* stream;
};

// A product with its algorithm.
class LtProduct {
 public:
  LtProduct(LtProduct&&) noexcept;
  LtProduct& operator=(LtProduct&&) noexcept;
  ~LtProduct();

  // Enqueues it; null, or why the library refused.
  const char* run(const LtArguments& arguments) const;

 private:
  friend Result<LtProduct> prepare_product(const GemmProblem& problem, int64_t workspace_bytes);
  struct State;
  explicit LtProduct(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

Result<LtProduct> prepare_product(const GemmProblem& problem, int64_t workspace_bytes);

}  // namespace tenon::cuda
