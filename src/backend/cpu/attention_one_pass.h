// The workspace of kernels of attention_grad that compute the scores once.
#pragma once

#include <cstdint>

#include "backend/cpu/attention_sizes.h"
#include "device/kernel.h"

namespace tenon {

// The scratch of every thread, and sums for the outputs that are not f32.
inline int64_t one_pass_bytes(const OpSite& site, int64_t scratch_bytes, int threads) {
  ScratchCutter sums;
  for (const Type& type : site.outputs) {
    if (type.dtype != DType::f32) sums.take(type.shape.elements());
  }
  return scratch_bytes * threads + sums.used();
}

}  // namespace tenon
