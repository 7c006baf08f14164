// Speed of single kernels on the shapes of a small model, each as a program of one op that is planned and run
// like any other, so that it measures what a device's catalogue would choose.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "run/bench/kernel_times.h"

namespace tenon {

struct KernelBenchSettings {
  std::string only;  // op to measure; empty: all of them
  std::vector<std::string> without;
  double seconds = 0.1;  // spent on each case
  bool once = false;     // one run a case and no times, for a program that counts instructions (counted_run)
};

struct KernelBenchCase {
  std::string what;  // "q_proj, training"
  KernelTime time;   // of one call, the shortest of the repetitions
};

// The one run of a case where `once` is set, a function of its own so that valgrind can tell it by name.
Status counted_run(Executor& executor);

// The names of the ops that have a case.
std::vector<std::string> benched_ops();

// In a fixed order. Errors: not_found where no case has that op, unsupported, device.
Result<std::vector<KernelBenchCase>> bench_kernels(Device& device, const KernelBenchSettings& settings);

}  // namespace tenon
