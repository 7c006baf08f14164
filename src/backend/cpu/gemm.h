// Matrix product over any dtypes, accumulated in f32: the engine under the matmul and cross-entropy kernels.
// Operands are packed into panels in the caller's workspace (dtypes meet there), then multiplied tile by tile
// in registers, as Goto and van de Geijn (2008) and BLIS do. The split over threads is static, or of rows,
// which change no sum: the same thread count gives the same bits. Never allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace tenon {

class ThreadPool;

// A row-major matrix as stored: `stride` elements from row to row (whole blocks for block dtypes).
struct GemmMatrix {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;
  bool transposed = false;  // the product reads it transposed
};

// A second product, of the same output, that is added to the first: alpha * a[m, k] · b[k, n].
struct GemmTail {
  int64_t k = 0;  // 0: none; else at most kMostTailDepth
  GemmMatrix a;   // not transposed
  GemmMatrix b;
  bool round_b = false;
  float alpha = 1.0f;
};
inline constexpr int64_t kMostTailDepth = 256;

// What multiplies. Sums are f32 everywhere.
enum class GemmUnit : uint8_t {
  f32,         // vectors of f32, to which operands are widened
  bf16_pairs,  // both operands are rounded to bf16 (avx512_bf16)
  bf16_tiles,  // the same, in tile registers (amx_bf16)
};

// out[m, n] = alpha * a[m, k] · b[k, n] (+ tail) (+ addend), rounded once to out_dtype (f32 or bf16). Where
// there is a tail k is positive and alpha 1; with a bf16 unit k is positive.
struct Gemm {
  GemmUnit unit = GemmUnit::f32;
  int64_t m = 0, n = 0, k = 0;
  GemmMatrix a;          // any dtype without blocks
  GemmMatrix b;          // any dtype
  bool round_b = false;  // b's elements are rounded to bf16 first
  float alpha = 1.0f;
  GemmTail tail;
  GemmMatrix addend;         // f32 or bf16; data null: none; stride 0: one row for all; never transposed
  std::byte* out = nullptr;  // may be the addend's place, element for element
  DType out_dtype = DType::f32;
  int64_t out_stride = 0;
};

// What decides the workspace, besides the thread count.
struct GemmSizes {
  int64_t m = 0, n = 0, k = 0;
  DType b_dtype = DType::f32;
  bool b_transposed = false;
  DType out_dtype = DType::f32;
  int64_t tail_k = 0;
  GemmUnit unit = GemmUnit::f32;
};

int64_t gemm_workspace_bytes(const GemmSizes& sizes, int threads);

// `workspace` is aligned to 64 bytes and at least as long as gemm_workspace_bytes says for threads.size().
void gemm(const Gemm& gemm, std::span<std::byte> workspace, ThreadPool& threads);

}  // namespace tenon
