#include "exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "base/allocation_counter.h"
#include "exec/load_statics.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPoisonByte = 0xff;  // NaN in every float dtype, -1 in the integer ones

// A program resolved to addresses. The vectors are filled once, so spans into them stay valid.
struct Prepared {
  const ProgramPlan* plan = nullptr;
  std::vector<TensorView> inputs;   // of all launches, one after the other
  std::vector<TensorView> outputs;  // likewise
  std::vector<const KernelDef*> kernels;
  std::vector<KernelCall> calls;
  std::vector<int32_t> steps;   // the step of each call
  std::vector<double> seconds;  // of each call
  std::unique_ptr<Launches> launches;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

struct Executor::State {
  const Plan& plan;
  Device& device;
  ExecutorOptions options;
  std::unique_ptr<DeviceBuffer> static_arena;
  std::unique_ptr<DeviceBuffer> work_arena;
  PlacedStatics statics;
  std::vector<Prepared> programs;
  std::vector<std::byte> poison;       // for devices whose memory the host cannot write
  const Prepared* last_run = nullptr;  // whose values are in the work arena
  LoadReport loaded;
  int64_t allocations = 0;
  bool broken = false;

  Status check_device() const;
  Status allocate();
  void resolve(const ProgramPlan& planned);
  std::byte* address(const ProgramPlan& planned, ValueId id) const;
  Status fill_with_poison();
  Status launch(Prepared& program, std::span<double> step_seconds);
  Result<const PlacedStatic*> find(std::string_view name, size_t bytes) const;
};

Status Executor::State::check_device() const {
  const std::span<const KernelDef> kernels = device.kernels();
  for (const ProgramPlan& program : plan.programs) {
    for (const PlanStep& step : program.steps) {
      if (step.kernel == nullptr) continue;
      const bool known = step.kernel >= kernels.data() && step.kernel < kernels.data() + kernels.size();
      if (!known) {
        return bad_argument(fmt::format("the plan's kernel '{}' is not of this device", step.kernel->name),
                            device.facts().name, "Plan for the device that is to run it.");
      }
    }
  }
  if (plan.external_bytes > 0 && !device.reads_host_memory()) {
    return unsupported("its kernels cannot read weights from mapped files", device.facts().name,
                       "Plan without external weights.");
  }
  return {};
}

Status Executor::State::allocate() {
  const Clock::time_point begin = Clock::now();
  if (plan.static_bytes > 0) {
    ASSIGN_OR_RETURN(static_arena, device.allocate(plan.static_bytes));
  }
  if (plan.work_bytes > 0) {
    ASSIGN_OR_RETURN(work_arena, device.allocate(plan.work_bytes));
  }
  if (options.poison && !in_host_memory(device)) {
    poison.assign(static_cast<size_t>(plan.work_bytes), static_cast<std::byte>(kPoisonByte));
  }
  loaded.allocation_seconds = seconds_since(begin);
  return {};
}

std::byte* Executor::State::address(const ProgramPlan& planned, ValueId id) const {
  const Placement& root = planned.root(id);
  if (planned.in_work_arena(id)) return work_arena ? work_arena->data() + root.offset : nullptr;
  return statics.at(planned.program.value(planned.placement(id).root).name).data;
}

void Executor::State::resolve(const ProgramPlan& planned) {
  const Program& program = planned.program;
  Prepared& out = programs.emplace_back();
  out.plan = &planned;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (planned.steps[i].kernel == nullptr) continue;
    for (ValueId id : program.ops[i].inputs) {
      out.inputs.push_back({address(planned, id), program.value(id).type});
    }
    for (ValueId id : program.ops[i].outputs) {
      out.outputs.push_back({address(planned, id), program.value(id).type});
    }
  }
  const TensorView* inputs = out.inputs.data();
  const TensorView* outputs = out.outputs.data();
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const PlanStep& step = planned.steps[i];
    if (step.kernel == nullptr) continue;
    KernelCall call;
    call.step = op.name;
    call.attrs = &op.attrs;
    call.inputs = {inputs, op.inputs.size()};
    call.outputs = {outputs, op.outputs.size()};
    if (step.workspace_bytes > 0) {
      call.workspace = {work_arena->data() + step.workspace_offset,
                        static_cast<size_t>(step.workspace_bytes)};
    }
    inputs += op.inputs.size();
    outputs += op.outputs.size();
    out.kernels.push_back(step.kernel);
    out.calls.push_back(call);
    out.steps.push_back(static_cast<int32_t>(i));
  }
  out.seconds.assign(out.calls.size(), 0.0);
}

Status Executor::State::fill_with_poison() {
  if (!options.poison || !work_arena) return {};
  if (!in_host_memory(device)) return device.upload(work_arena->data(), poison);
  std::memset(work_arena->data(), kPoisonByte, static_cast<size_t>(work_arena->bytes()));
  return {};
}

Status Executor::State::launch(Prepared& program, std::span<double> step_seconds) {
  RETURN_IF_ERROR(fill_with_poison());
  const std::span<double> seconds = step_seconds.empty() ? std::span<double>() : std::span(program.seconds);
  RETURN_IF_ERROR(program.launches->run(seconds));
  if (!step_seconds.empty()) {
    std::fill(step_seconds.begin(), step_seconds.end(), 0.0);
    for (size_t i = 0; i < seconds.size(); ++i) step_seconds[program.steps[i]] = seconds[i];
  }
  return {};
}

Result<const PlacedStatic*> Executor::State::find(std::string_view name, size_t bytes) const {
  const auto found = statics.find(name);
  if (found == statics.end())
    return not_found("no static value of the plan has this name", std::string(name));
  const Type& type = found->second.value->type;
  if (static_cast<int64_t>(bytes) == type.bytes()) return &found->second;
  return bad_argument(fmt::format("{} bytes given where {} has {}", bytes, type.text(), type.bytes()),
                      std::string(name));
}

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::prepare(const Plan& plan, Device& device,
                                                    const StaticSource& source,
                                                    const ExecutorOptions& options) {
  auto state = std::unique_ptr<State>(new State{plan, device, options});
  RETURN_IF_ERROR(state->check_device());
  RETURN_IF_ERROR(state->allocate());
  std::byte* const arena = state->static_arena ? state->static_arena->data() : nullptr;
  ASSIGN_OR_RETURN(state->statics, load_statics(plan, device, arena, source, state->loaded));
  for (const ProgramPlan& planned : plan.programs) state->resolve(planned);
  for (Prepared& program : state->programs) {
    ASSIGN_OR_RETURN(program.launches, device.prepare(program.kernels, program.calls));
  }
  return std::unique_ptr<Executor>(new Executor(std::move(state)));
}

Status Executor::write(std::string_view name, std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const PlacedStatic* at, state_->find(name, bytes.size()));
  if (at->value->external) return bad_argument("it stays in its file and cannot be written", at->value->name);
  if (bytes.empty()) return {};
  return state_->device.upload(at->data, bytes);
}

Status Executor::read(std::string_view name, std::span<std::byte> bytes) const {
  ASSIGN_OR_RETURN(const PlacedStatic* at, state_->find(name, bytes.size()));
  if (bytes.empty()) return {};
  if (!at->value->external) return state_->device.download(bytes, at->data);
  std::memcpy(bytes.data(), at->data, bytes.size());
  return {};
}

Status Executor::read_output(std::string_view program, std::string_view name,
                             std::span<std::byte> bytes) const {
  const ProgramPlan* planned = state_->plan.find(program);
  if (planned == nullptr) return not_found("no program of the plan has this name", std::string(program));
  const ValueId id = planned->program.find(name);
  if (!id.valid() || planned->program.value(id).role != Role::output) {
    return not_found("the program has no output of this name", fmt::format("{}: {}", program, name));
  }
  const Type& type = planned->program.value(id).type;
  if (static_cast<int64_t>(bytes.size()) != type.bytes()) {
    return bad_argument(
        fmt::format("{} bytes given where {} has {}", bytes.size(), type.text(), type.bytes()),
        std::string(name));
  }
  const bool current = state_->last_run != nullptr && state_->last_run->plan == planned;
  if (planned->in_work_arena(id) && !current) {
    return bad_argument("its program is not the last that ran", fmt::format("{}: {}", program, name));
  }
  if (bytes.empty()) return {};
  return state_->device.download(bytes, state_->address(*planned, id));
}

Status Executor::run(std::string_view program, std::span<double> step_seconds) {
  State& state = *state_;
  if (state.broken) return device_error("it failed before and runs nothing more", state.device.facts().name);
  const auto found = std::find_if(state.programs.begin(), state.programs.end(),
                                  [&](const Prepared& p) { return p.plan->program.name == program; });
  if (found == state.programs.end()) {
    return not_found("no program of the plan has this name", std::string(program));
  }
  CHECK(step_seconds.empty() || step_seconds.size() == found->plan->steps.size(), "one time for each step");
  const int64_t before = heap_allocations();
  state.last_run = nullptr;
  Status status = state.launch(*found, step_seconds);
  state.allocations += heap_allocations() - before;
  if (status.ok()) {
    state.last_run = &*found;
  } else {
    state.broken = true;
  }
  return status;
}

const LoadReport& Executor::load_report() const {
  return state_->loaded;
}

int64_t Executor::allocated_bytes() const {
  int64_t bytes = 0;
  if (state_->static_arena) bytes += state_->static_arena->bytes();
  if (state_->work_arena) bytes += state_->work_arena->bytes();
  return bytes;
}

int64_t Executor::allocations_in_runs() const {
  return state_->allocations;
}

}  // namespace tenon
