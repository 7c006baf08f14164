// The plain matrix product: any dtypes, any sizes, sums over k in order. Slow beside the library's.
#pragma once

#include "backend/cuda/tensor.h"

namespace tenon::cuda {

struct PlainProduct {
  Tensor a, b, out;  // b, of any dtype, is read as a's
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  float alpha = 1;
  Tensor addend;               // data null: none
  bool addend_is_row = false;  // [n], else [m, n]
};

void launch_plain_matmul(const KernelCall& call, const PlainProduct& product);

}  // namespace tenon::cuda
