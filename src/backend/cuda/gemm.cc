#include "backend/cuda/gemm.h"

#include <algorithm>
#include <utility>

#include "base/checked_math.h"

#ifdef TENON_CUDA_EMULATED
#include "backend/cuda/plain_matmul.h"
#else
#include "backend/cuda/cublaslt.h"
#endif

namespace tenon::cuda {
namespace {

constexpr int64_t kMostWorkspace = 32 << 20;  // what the library asks for on Hopper
constexpr int64_t kMostSplits = 32;
constexpr int64_t kWorkspaceAlignment = 256;  // the library's; placements are aligned to less

thread_local const char* launch_failure = nullptr;

}  // namespace

int64_t gemm_workspace_bytes(int64_t m, int64_t n) {
  constexpr int64_t kLeast = 64 << 10;
  const int64_t used =
      std::clamp(round_up(kMostSplits * m * n * 4, kWorkspaceAlignment), kLeast, kMostWorkspace);
  return used + kWorkspaceAlignment;
}

const char* take_launch_failure() {
  return std::exchange(launch_failure, nullptr);
}

#ifdef TENON_CUDA_EMULATED

struct Gemm::Plan {
  GemmProblem problem;
};

Result<Gemm> Gemm::prepare(const GemmProblem& problem) {
  return Gemm(std::make_unique<Plan>(problem));
}

void Gemm::run(const KernelCall& call, const std::byte* a, const std::byte* b, const std::byte* c,
               std::byte* out, float alpha, std::byte*) const {
  const GemmProblem& p = plan_->problem;
  const auto tensor = [](const std::byte* data, DType dtype) {
    return Tensor{const_cast<std::byte*>(data), dtype};
  };
  launch_plain_matmul(call, {.a = tensor(a, p.operand),
                             .b = tensor(b, p.operand),
                             .out = tensor(out, p.out),
                             .m = p.m,
                             .n = p.n,
                             .k = p.k,
                             .trans_a = p.trans_a,
                             .trans_b = p.trans_b,
                             .alpha = alpha,
                             .addend = tensor(p.added == GemmProblem::Added::nothing ? nullptr : c, p.out),
                             .addend_is_row = p.added == GemmProblem::Added::row});
}

#else

struct Gemm::Plan {
  LtProduct product;
  bool adds_matrix;
  bool adds_row;
};

Result<Gemm> Gemm::prepare(const GemmProblem& problem) {
  ASSIGN_OR_RETURN(LtProduct product, prepare_product(problem, gemm_workspace_bytes(problem.m, problem.n) -
                                                                   kWorkspaceAlignment));
  return Gemm(std::make_unique<Plan>(Plan{std::move(product), problem.added == GemmProblem::Added::matrix,
                                          problem.added == GemmProblem::Added::row}));
}

void Gemm::run(const KernelCall& call, const std::byte* a, const std::byte* b, const std::byte* c,
               std::byte* out, float alpha, std::byte* workspace) const {
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(workspace));
  const char* failure =
      plan_->product.run({.a = a,
                          .b = b,
                          .c = plan_->adds_matrix ? c : nullptr,
                          .row = plan_->adds_row ? c : nullptr,
                          .out = out,
                          .alpha = alpha,
                          .workspace = workspace + round_up(address, kWorkspaceAlignment) - address,
                          .stream = call.stream});
  if (failure != nullptr) launch_failure = failure;
}

#endif

Gemm::Gemm(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;
Gemm::~Gemm() = default;

}  // namespace tenon::cuda
