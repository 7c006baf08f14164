// What this machine's processor can do at best, measured: multiply-adds in registers, and reading memory.
// Benchmarks and time estimates set kernels beside it.
#pragma once

#include "device/device_facts.h"

namespace tenon {

// Multiplies and adds in registers on this thread, with the widest vectors that the machine has, and returns
// the flops that `count` rounds are (some hundred a round). `sink` takes the sum, so that nothing is left
// out.
int64_t multiply_add_in_registers(int64_t count, float* sink);

// Fills gflops_f32, gflops_bf16 and gigabytes_per_second of `facts` for its number of threads, in about half
// a second and with 256 MiB of memory. The kernels multiply bf16 numbers as f32, so both ceilings are one.
void measure_cpu_ceilings(DeviceFacts& facts);

}  // namespace tenon
