// What this machine's processor offers, read from cpuid, /proc and the control group; nothing is measured.
#pragma once

#include "device/device_facts.h"

namespace tenon {

// Facts of this machine for kernels that use `threads` threads. Features, where both the processor and the
// system support them: "avx2" (with FMA, F16C and BMI2), "avx512" (F, CD, BW, DQ, VL), "avx512_vnni",
// "avx512_bf16", "amx_bf16", "amx_int8".
DeviceFacts cpu_facts(int threads);

}  // namespace tenon
