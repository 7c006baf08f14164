// The matrix product of gemm.h with operands rounded to bf16 and a unit that multiplies those.
#pragma once

#include <cstddef>
#include <span>

#include "backend/cpu/gemm.h"
#include "backend/cpu/gemm_blocking.h"

namespace tenon {

// The contract of gemm(); `g.unit` is a bf16 one that this machine has, and `blocking` is of g's sizes.
void gemm_bf16(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace,
               ThreadPool& threads);

}  // namespace tenon
