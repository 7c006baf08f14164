// The tensors of a kernel call as the packed product (gemm.h) takes them.
#pragma once

#include "backend/cpu/gemm.h"
#include "device/kernel.h"

namespace tenon {

inline GemmMatrix gemm_matrix(const TensorView& tensor, bool transposed = false) {
  return {tensor.data, tensor.type.dtype, tensor.type.shape[1], transposed};
}

// A vector is added to every row.
inline GemmMatrix gemm_addend(const TensorView& tensor) {
  return {tensor.data, tensor.type.dtype, tensor.type.shape.rank() == 1 ? 0 : tensor.type.shape[1]};
}

inline void set_gemm_out(Gemm& gemm, const TensorView& out) {
  gemm.m = out.type.shape[0];
  gemm.n = out.type.shape[1];
  gemm.out = out.data;
  gemm.out_dtype = out.type.dtype;
  gemm.out_stride = gemm.n;
}

}  // namespace tenon
