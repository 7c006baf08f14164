// What a machine offers, as a value: it can be printed, stored and loaded, so that a plan for another machine
// can be made here. Nothing in it is measured at plan time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon {

enum class DeviceKind : uint8_t { cpu, cuda };

struct DeviceFacts {
  DeviceKind kind = DeviceKind::cpu;
  std::string name;                   // "AMD EPYC 9755", "NVIDIA H200"
  std::vector<std::string> features;  // instruction sets ("avx2", "avx512", "avx512_bf16"), or "sm_90a"
  int32_t threads = 1;                // host threads that kernels split their work over
  int64_t memory_bytes = 0;           // of the space that arenas live in
  double gflops_f32 = 0;              // ceilings for the plan's time estimate; 0: not known
  double gflops_bf16 = 0;
  double gigabytes_per_second = 0;

  bool has(std::string_view feature) const;
};

std::string device_facts_json(const DeviceFacts& facts);
Result<DeviceFacts> parse_device_facts(std::string_view json, std::string_view name);

}  // namespace tenon
