// The memory account of a plan, for people (text) and scripts (JSON). Sizes are what the arenas hold: rounded
// up to kArenaAlignment.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tenon {

// What the bytes are for. Activations kept for the backward pass (alive when it begins) are told apart from
// those that die before it or are computed again in it.
enum class MemoryUse : uint8_t {
  weights,
  adapter,
  optimiser_state,
  gradient_sums,
  cache,
  inputs,  // and constants
  kept_activations,
  activations,
  gradients,
  scratch,
  outputs
};
inline constexpr size_t kMemoryUses = 11;
std::string_view memory_use_name(MemoryUse use);

using BytesByUse = std::array<int64_t, kMemoryUses>;

struct LiveValue {
  std::string name;  // of the value, or of the op whose scratch it is; may be empty
  std::string op;    // that produces it
  std::string type;  // for scratch the kernel
  MemoryUse use = MemoryUse::activations;
  int64_t bytes = 0;
};

struct ProgramWork {
  std::string program;
  int64_t flops = 0;
};

struct MemoryReport {
  BytesByUse static_bytes{};            // of the static arena; the sum is its size
  BytesByUse peak_bytes{};              // live at the peak step of the program with the largest work arena;
                                        // the sum is lower_bound_bytes
  std::vector<LiveValue> live_at_peak;  // largest first
  std::string peak_program;
  std::string peak_op;  // "matmul model.layers.3.mlp.down_proj"
  int32_t peak_step = 0;
  int64_t arena_bytes = 0;        // both arenas: what will be allocated
  int64_t work_bytes = 0;         // the work arena
  int64_t lower_bound_bytes = 0;  // no work arena can be smaller
  int64_t external_bytes = 0;     // of mapped files
  std::vector<ProgramWork> work;  // of one run of each program
};

MemoryReport memory_report(const Plan& plan);
std::string memory_report_text(const MemoryReport& report);
std::string memory_report_json(const MemoryReport& report);

// Live bytes of the work arena during each step of a program: the picture of a step.
std::vector<BytesByUse> memory_timeline(const ProgramPlan& plan);

// One line a step: op, kernel, types, placement; for `tenon plan --steps`.
std::string steps_text(const ProgramPlan& plan);

}  // namespace tenon
