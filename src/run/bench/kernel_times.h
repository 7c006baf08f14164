// Where the time of a program goes: one run timed step by step, steps of one kernel and one set of types put
// together. Also times each kind of step against what the machine could do at best.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/device_facts.h"
#include "exec/executor.h"

namespace tenon {

// Steps of one program that run the same kernel on the same types.
struct KernelTime {
  std::string op;
  std::string kernel;
  std::string types;  // "f32[2048,576], f32[576,576] -> f32[2048,576]"
  int64_t calls = 0;
  double seconds = 0;  // of all calls
  int64_t flops = 0;   // of all calls
  int64_t bytes = 0;   // read and written, by a perfect cache
  bool bf16 = false;   // whether its products are of bf16 numbers
};

// The steps of a program put together, without times, in no particular order.
std::vector<KernelTime> describe_kernels(const ProgramPlan& program);

// Runs `program` once to warm up and then `runs` times, keeping each step's shortest time. The most expensive
// first. `sequence_tokens`: as of program_flops. Errors of the device.
Result<std::vector<KernelTime>> time_kernels(Executor& executor, const ProgramPlan& program, int runs,
                                             int64_t sequence_tokens = 0);

// The least seconds that the machine needs for it: arithmetic and memory traffic at their ceilings, whichever
// is slower. 0 where the ceilings are not known.
double least_seconds(const KernelTime& time, const DeviceFacts& ceilings);

// One step of a program, without its time. `sequence_tokens`: as of program_flops.
KernelTime step_work(const Program& program, const Op& op, int64_t sequence_tokens);

// flops of one run of a program. Packed attention is counted over sequences of `sequence_tokens`, which only
// its inputs tell; 0: over one of all tokens.
int64_t program_flops(const Program& program, int64_t sequence_tokens = 0);

}  // namespace tenon
