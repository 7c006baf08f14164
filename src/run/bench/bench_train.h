// Speed of LoRA training on random tokens, through the programs, plan and kernels of `tenon train`: the work
// of one optimiser step is batch sequences of seq tokens, every token trained on, LoRA on every linear layer.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "run/bench/bench_model.h"
#include "run/bench/kernel_times.h"
#include "run/programs.h"

namespace tenon {

struct TrainBenchSettings : ProgramSettings {
  int64_t batch = 4;
  int64_t seq = 512;  // tokens of a sequence; at least 2
  int64_t rank = 16;
  int64_t warmup = 2;  // steps that are not timed
  int64_t steps = 6;   // that are, after those
  bool recompute = false;
  bool times_kernels = false;
};

struct TrainBench {
  std::vector<double> step_seconds;                                                  // of the timed steps
  std::vector<double> losses;                                                        // of every step
  std::chrono::steady_clock::time_point planned, first_step_began, first_step_done;  // with its loss read
  int64_t tokens = 0;                                                                // of a step
  int64_t flops = 0;                                                                 // of a step
  int64_t arena_bytes = 0;                                                           // as planned
  int64_t external_bytes = 0;
  LoadReport load;
  DeviceMemoryUse memory;           // after the timed steps
  int64_t grown_bytes = 0;          // of device memory during them
  int64_t peak_resident_bytes = 0;  // of the process, after the timed steps
  std::vector<KernelTime> kernels;  // of the train step, where asked for
};

// Errors: bad_argument (--seq), unsupported, device.
Result<TrainBench> bench_train(const BenchModel& model, Device& device, const TrainBenchSettings& settings);

}  // namespace tenon
