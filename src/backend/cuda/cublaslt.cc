// The descriptors are column-major, so a row-major product is computed as its transpose: out^T = b^T · a^T.
#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>
#include <string>

namespace tenon::cuda {
namespace {

#define TENON_CUBLASLT_FUNCTIONS(X)       \
  X(cublasLtCreate)                       \
  X(cublasLtGetVersion)                   \
  X(cublasLtGetStatusString)              \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmul)

struct Library {
#define X(name) decltype(&::name) name = nullptr;
  TENON_CUBLASLT_FUNCTIONS(X)
#undef X
  cublasLtHandle_t handle = nullptr;
};

Library library;  // filled once by load_cublaslt()

Status load() {
  constexpr const char* kName = "libcublasLt.so.13";
  void* shared = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (shared == nullptr) {
    return device_error(fmt::format("the CUDA device needs {}: {}", kName, dlerror()), "cuda",
                        "Install CUDA 13's cuBLAS, or name its folder in LD_LIBRARY_PATH.");
  }
#define X(name)                                                             \
  library.name = reinterpret_cast<decltype(&::name)>(dlsym(shared, #name)); \
  if (library.name == nullptr) return device_error("it lacks " #name, kName, "Install CUDA 13's cuBLAS.");
  TENON_CUBLASLT_FUNCTIONS(X)
#undef X
  const cublasStatus_t status = library.cublasLtCreate(&library.handle);
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  library.handle = nullptr;
  return device_error(fmt::format("it does not start: {}", library.cublasLtGetStatusString(status)), kName);
}

cudaDataType_t data_type(DType dtype) {
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// A row-major matrix as the library sees it: its transpose.
cublasLtMatrixLayout_t layout_of(DType dtype, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  library.cublasLtMatrixLayoutCreate(&layout, data_type(dtype), static_cast<uint64_t>(columns),
                                     static_cast<uint64_t>(rows), columns);
  return layout;
}

std::string problem_text(const GemmProblem& p) {
  return fmt::format("[{}, {}, {}] of {} to {}{}{}", p.m, p.n, p.k, dtype_name(p.operand), dtype_name(p.out),
                     p.trans_a ? ", a transposed" : "", p.trans_b ? ", b transposed" : "");
}

}  // namespace

Status load_cublaslt() {
  static std::once_flag once;
  static Status status;
  std::call_once(once, [] { status = load(); });
  return status;
}

std::string cublaslt_version() {
  if (library.handle == nullptr) return {};
  const size_t version = library.cublasLtGetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

struct LtProduct::State {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;  // b, a and the output
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace_bytes = 0;
  bool adds_row = false;

  ~State() {
    if (out != nullptr) library.cublasLtMatrixLayoutDestroy(out);
    if (right != nullptr) library.cublasLtMatrixLayoutDestroy(right);
    if (left != nullptr) library.cublasLtMatrixLayoutDestroy(left);
    if (description != nullptr) library.cublasLtMatmulDescDestroy(description);
  }

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    library.cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value));
  }
  void describe(const GemmProblem& p);
  cublasStatus_t choose_algorithm();
};

void LtProduct::State::describe(const GemmProblem& p) {
  library.cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  adds_row = p.added == GemmProblem::Added::row;
  if (adds_row) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  left = p.trans_b ? layout_of(p.operand, p.n, p.k) : layout_of(p.operand, p.k, p.n);
  right = p.trans_a ? layout_of(p.operand, p.k, p.m) : layout_of(p.operand, p.m, p.k);
  out = layout_of(p.out, p.m, p.n);
}

// The library's first choice; split sums may only be added in f32 in its workspace, in order.
cublasStatus_t LtProduct::State::choose_algorithm() {
  cublasLtMatmulPreference_t preference = nullptr;
  library.cublasLtMatmulPreferenceCreate(&preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    library.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes));
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // Placements start at multiples of kArenaAlignment, rows of an output at multiples of its element.
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(attribute, uint32_t{16});
  }
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  cublasStatus_t status = library.cublasLtMatmulAlgoGetHeuristic(library.handle, description, left, right,
                                                                 out, out, preference, 1, &result, &found);
  library.cublasLtMatmulPreferenceDestroy(preference);
  if (status == CUBLAS_STATUS_SUCCESS && found == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
  if (status == CUBLAS_STATUS_SUCCESS) algorithm = result.algo;
  return status;
}

LtProduct::LtProduct(std::unique_ptr<State> state) : state_(std::move(state)) {}
LtProduct::LtProduct(LtProduct&&) noexcept = default;
LtProduct& LtProduct::operator=(LtProduct&&) noexcept = default;
LtProduct::~LtProduct() = default;

Result<LtProduct> prepare_product(const GemmProblem& problem, int64_t workspace_bytes) {
  RETURN_IF_ERROR(load_cublaslt());
  auto state = std::make_unique<LtProduct::State>();
  state->workspace_bytes = static_cast<size_t>(workspace_bytes);
  state->describe(problem);
  const cublasStatus_t status = state->choose_algorithm();
  if (status != CUBLAS_STATUS_SUCCESS) {
    return device_error(fmt::format("cuBLASLt {} has no algorithm: {}", cublaslt_version(),
                                    library.cublasLtGetStatusString(status)),
                        problem_text(problem), "Leave the kernel out with --without.");
  }
  return LtProduct(std::move(state));
}

const char* LtProduct::run(const LtArguments& in) const {
  const State& s = *state_;
  if (s.adds_row) s.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, in.row);
  const float beta = in.c != nullptr ? 1.0f : 0.0f;
  const std::byte* added = in.c != nullptr ? in.c : in.out;
  const cublasStatus_t status = library.cublasLtMatmul(
      library.handle, s.description, &in.alpha, in.b, s.left, in.a, s.right, &beta, added, s.out, in.out,
      s.out, &s.algorithm, in.workspace, s.workspace_bytes, static_cast<cudaStream_t>(in.stream));
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : library.cublasLtGetStatusString(status);
}

}  // namespace tenon::cuda

#endif
