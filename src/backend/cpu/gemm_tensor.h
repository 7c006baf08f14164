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

// Whether a machine has a unit, and `operand`, the dtype that a product is computed in, is what it
// multiplies.
inline bool has_gemm_unit(GemmUnit unit, DType operand, const DeviceFacts& facts) {
  if (facts.kind != DeviceKind::cpu) return false;
  if (unit == GemmUnit::f32) return true;
  const char* feature = unit == GemmUnit::bf16_pairs ? "avx512_bf16" : "amx_bf16";
  return operand == DType::bf16 && facts.has("avx512") && facts.has(feature);
}

// The relative cost of kernels that differ in the unit.
inline constexpr double gemm_unit_cost(GemmUnit unit) {
  return unit == GemmUnit::f32 ? 2.0 : unit == GemmUnit::bf16_pairs ? 1.5 : 1.25;
}

// Defines a kernel in one unit from the file's templates by unit: serves, workspace_bytes and run.
// `preference` is taken off the cost of the unit.
#define TENON_UNIT_KERNEL(op_name, kernel_name, gemm_unit, preference)                                      \
  const KernelDef& kernel_name##_kernel() {                                                                 \
    static constexpr KernelDef def{                                                                         \
        .op = op_name,                                                                                      \
        .name = #kernel_name,                                                                               \
        .serves = serves<gemm_unit>,                                                                        \
        .workspace_bytes = workspace_bytes<gemm_unit>,                                                      \
        .cost = [](const OpSite&, const DeviceFacts&) { return gemm_unit_cost(gemm_unit) - (preference); }, \
        .run = run<gemm_unit>};                                                                             \
    return def;                                                                                             \
  }

// The kernels of all units, each by its name.
#define TENON_UNIT_KERNELS(op_name, f32_name, pairs_name, tiles_name, preference) \
  TENON_UNIT_KERNEL(op_name, f32_name, GemmUnit::f32, preference)                 \
  TENON_UNIT_KERNEL(op_name, pairs_name, GemmUnit::bf16_pairs, preference)        \
  TENON_UNIT_KERNEL(op_name, tiles_name, GemmUnit::bf16_tiles, preference)

}  // namespace tenon
