// The memory account of a plan, for people (text) and scripts (JSON).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tenon {

// What the bytes are for. Activations kept for the backward pass are told apart from those that die at once.
enum class MemoryUse : uint8_t {
  weights,
  adapter,
  optimiser_state,
  gradient_sums,
  cache,
  inputs,
  kept_activations,
  activations,
  gradients,
  scratch,
  outputs
};
std::string_view memory_use_name(MemoryUse use);

struct LiveValue {
  std::string name;
  std::string type;
  MemoryUse use;
  int64_t bytes;
};

struct MemoryReport {
  std::array<int64_t, 11> static_bytes{};  // by MemoryUse, of the static arena
  std::array<int64_t, 11>
      peak_bytes{};  // by MemoryUse, of what is live at the peak step of the largest program
  std::vector<LiveValue> live_at_peak;  // largest first
  std::string peak_program;
  std::string peak_op;
  int64_t arena_bytes = 0, lower_bound_bytes = 0, external_bytes = 0;
  int64_t flops = 0;  // of one run of every program, summed
};

MemoryReport memory_report(const Plan& plan);
std::string memory_report_text(const MemoryReport& report);

// Live bytes of the work arena after each step of a program, by MemoryUse: the picture of a step.
std::vector<std::array<int64_t, 11>> memory_timeline(const ProgramPlan& plan);

// One line a step: op, kernel, types, placement; for `tenon plan --steps`.
std::string steps_text(const ProgramPlan& plan);

}  // namespace tenon
