// Matrix products by cuBLASLt, the algorithm chosen once for a problem's sizes and always the same for them.
// Sums are in f32 (never TF32), split sums in a fixed order. The emulated build computes them with the plain
// kernel.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "device/kernel.h"

namespace tenon::cuda {

// out[m, n] = alpha * a · b, row-major; a is [m, k] ([k, m] with trans_a), b is [k, n] ([n, k] with trans_b).
struct GemmProblem {
  enum class Added : uint8_t {
    nothing,
    matrix,  // c [m, n] of the output's dtype, which may be the output itself
    row,     // c [n] of the output's dtype
  };
  int64_t m = 0, n = 0, k = 0;  // all positive
  bool trans_a = false, trans_b = false;
  DType operand = DType::f32;  // of a and b: f32 or bf16
  DType out = DType::f32;      // f32; or bf16 with bf16 operands
  Added added = Added::nothing;
};

// Scratch of one product: what the library may split a sum into.
int64_t gemm_workspace_bytes(int64_t m, int64_t n);

class Gemm {
 public:
  // Fails where the library is missing or has no algorithm for the problem.
  static Result<Gemm> prepare(const GemmProblem& problem);
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;
  ~Gemm();

  // Enqueues the product; `workspace` is gemm_workspace_bytes long. A failure shows in take_launch_failure().
  void run(const KernelCall& call, const std::byte* a, const std::byte* b, const std::byte* c, std::byte* out,
           float alpha, std::byte* workspace) const;

 private:
  struct Plan;
  explicit Gemm(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

// The message of the last call that the library refused since this was last asked, or null.
const char* take_launch_failure();

}  // namespace tenon::cuda
