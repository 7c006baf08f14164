// What the kernels of this build take of a multiprocessor, read from their machine code when it was built
// (tools/kernel_resources).
#pragma once

#include <span>
#include <string_view>

namespace tenon::cuda {

struct KernelResources {
  std::string_view function;      // "flash_attention<128>"
  std::string_view architecture;  // "sm_90a"
  int registers = 0;              // of a thread
  int shared_bytes = 0;           // of a block, beside what a launch asks for
  int stack_bytes = 0;            // of a thread: spilled registers and arrays
};

// By function and architecture; empty where the kernels are emulated.
std::span<const KernelResources> kernel_resources();

}  // namespace tenon::cuda
