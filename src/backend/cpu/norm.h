// The arithmetic of the rms_norm kernels, in f32 over rows of f32 or bf16; the weight may be either too.
#pragma once

#include "device/kernel.h"

namespace tenon {

void run_rms_norm(const KernelCall& call);
void run_rms_norm_grad_input(const KernelCall& call);

// Sums each column over the rows in order. The workspace holds one f32 a row: rms_norm's 1/rms.
void run_rms_norm_grad_weight(const KernelCall& call);

}  // namespace tenon
