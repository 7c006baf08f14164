// The plan: where every value of a set of programs lies and which kernel serves every step, decided before
// anything is allocated. A pure function of programs, facts and kernels; immutable, printable, hashed. It
// holds no pointer to memory and no stream.
//
// Programs planned together (micro-step, optimiser step, evaluation) share their static values by name and
// reuse one work arena, since they never run at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "device/device_facts.h"
#include "device/kernel.h"
#include "ir/program.h"

namespace tenon {

enum class PlacementKind : uint8_t {
  external,     // in memory that the caller owns (a mapped weight file); takes no bytes of an arena
  static_data,  // in the static arena, for the life of the executor
  fresh,        // bytes of the work arena that nothing used before in this program
  reuse,        // bytes of the work arena that earlier values left
  in_place,     // where an input of its producer lies
  view,         // the same bytes as an input of its producer
};
std::string_view placement_kind_name(PlacementKind kind);

struct Placement {
  PlacementKind kind = PlacementKind::fresh;
  int64_t offset = 0;      // in the arena of its root; 0 for external
  int64_t bytes = 0;       // of the type; an arena gives it placed_bytes()
  int32_t first_step = 0;  // the step that writes it (-1: before the first)
  int32_t last_step = 0;   // the last step that reads it or a view of it; the number of steps where it
                           // outlives the program (statics, outputs)
  ValueId root;  // the value whose bytes these are: itself, or through in_place and view the first one
};

// Bytes that a value takes in an arena: every placement starts at a multiple of kArenaAlignment.
int64_t placed_bytes(int64_t bytes);

struct PlanStep {
  OpId op;
  const KernelDef* kernel = nullptr;  // null: a view, nothing runs
  int64_t workspace_offset = 0;       // in the work arena
  int64_t workspace_bytes = 0;
};

struct ProgramPlan {
  Program program;
  std::vector<PlanStep> steps;        // one for each op
  std::vector<Placement> placements;  // one for each value
  int64_t peak_bytes = 0;             // of the work arena
  int64_t lower_bound_bytes = 0;      // the most that is live at once: no placement can need less
  int32_t peak_step = 0;              // where the lower bound is reached

  const Placement& placement(ValueId id) const { return placements[static_cast<size_t>(id.index)]; }
  const Placement& root(ValueId id) const { return placement(placement(id).root); }
  // Whether the bytes of a value are in the work arena (else in the static arena or in a file).
  bool in_work_arena(ValueId id) const {
    const PlacementKind kind = root(id).kind;
    return kind != PlacementKind::static_data && kind != PlacementKind::external;
  }
};

// A static value shared by the programs.
struct StaticValue {
  std::string name;
  Type type;
  Role role = Role::weight;
  bool external = false;
  int64_t offset = 0;  // in the static arena
};

struct Plan {
  DeviceFacts facts;
  std::vector<StaticValue> statics;
  std::vector<ProgramPlan> programs;
  int64_t static_bytes = 0;    // size of the static arena
  int64_t work_bytes = 0;      // size of the work arena: the largest program's
  int64_t external_bytes = 0;  // of mapped files that steps read directly

  int64_t arena_bytes() const { return static_bytes + work_bytes; }
  const ProgramPlan* find(std::string_view program) const;
};

struct PlanOptions {
  bool reuse = true;     // off: every value gets bytes of its own (the oracle of the tests)
  bool in_place = true;  // off: no may-alias is taken
  // Names of weights that stay in the mapped file; a name that no program has says nothing.
  std::vector<std::string> external = {};
  // Forbidden kernels, by name, and kernels that must serve an op: "matmul=matmul_reference".
  std::vector<std::string> without_kernels = {};
  std::vector<std::string> require_kernels = {};
};

// Fails with `unsupported` where no kernel serves a step (naming the op, its types and why), with
// `bad_argument` where programs disagree on a static value, read what an in-place update has changed, or
// update what stays in a file; never with over_budget: whether the sizes fit is plan/fit.h's question.
// `kernels` must outlive the plan.
Result<Plan> make_plan(std::vector<Program> programs, const DeviceFacts& facts,
                       std::span<const KernelDef> kernels, const PlanOptions& options = {});

// No two placements that are live together overlap, every placement is inside its arena and aligned, every
// alias is allowed, the peak is at least the lower bound. A failure is a bug of the planner.
Status verify_plan(const Plan& plan);

// Names everything that the plan decides, and the programs and device that it was decided for.
uint64_t plan_hash(const Plan& plan);

}  // namespace tenon
