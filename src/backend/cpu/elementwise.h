// The arithmetic of the element-wise kernels over a range of elements: inputs and outputs of one dtype (f32
// or bf16), computed in f32, rounded once. An output may be any of the inputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "device/kernel.h"

namespace tenon {

enum class Elementwise : uint8_t {
  add,          // a + b
  mul,          // a * b
  scale,        // factor * a
  silu,         // a * sigmoid(a)
  silu_grad,    // inputs x, dy
  swiglu,       // inputs gate, up
  swiglu_grad,  // inputs gate, up, dy; outputs dgate, dup
};

// Runs the op over all elements of the call's tensors, split over its threads.
void run_elementwise(Elementwise op, const KernelCall& call, float factor = 1.0f);

// total += x for an f32 total and an x of f32 or bf16: the accumulate op.
void run_accumulate(const KernelCall& call);

}  // namespace tenon
