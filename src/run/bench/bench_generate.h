// Speed of prefill and cached decoding on random tokens, through the programs, plan and kernels of `tenon
// generate`: each stream is given a prompt, then all streams decode a token a run.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "exec/executor.h"
#include "run/bench/bench_model.h"
#include "run/bench/kernel_times.h"
#include "run/programs.h"

namespace tenon {

struct GenerateBenchSettings : ProgramSettings {
  int64_t prompt = 512;      // tokens of a stream
  int64_t new_tokens = 128;  // of a stream
  int64_t streams = 1;
  int64_t repeat = 3;  // timed, after one that is not
  bool times_kernels = false;
};

struct GenerateBench {
  std::vector<double> prefill_seconds;  // of all prompts, by repetition
  std::vector<double> decode_seconds;
  int64_t prefill_flops = 0;        // of all prompts
  int64_t decode_flops = 0;         // of all new tokens
  int64_t decode_weight_bytes = 0;  // read by one decoding run whatever the caches hold
  double load_seconds = 0;  // of opening the session: memory, weights, what is fixed before the first run
  LoadReport load;          // of the weights alone
  // Of the model's files, in the same run; 0: nothing is loaded of them.
  double page_cache_bytes_per_second = 0;
  DeviceMemoryUse memory;   // after the timed runs
  int64_t grown_bytes = 0;  // of device memory during them
  int64_t arena_bytes = 0;
  int64_t external_bytes = 0;
  int64_t peak_resident_bytes = 0;
  std::vector<KernelTime> prefill_kernels;  // of one run, where asked for
  std::vector<KernelTime> decode_kernels;
};

// Errors: unsupported, device.
Result<GenerateBench> bench_generate(const BenchModel& model, Device& device,
                                     const GenerateBenchSettings& settings);

}  // namespace tenon
