#include "exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/allocation_counter.h"
#include "base/threads.h"

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

struct Located {
  const StaticValue* value = nullptr;
  std::byte* data = nullptr;  // in the static arena, or the caller's (never written then)
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& data) {
  return std::as_bytes(std::span(data));
}

// Kernels read elements at addresses that their type allows.
int64_t element_alignment(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::i8:
    case DType::u8:
      return 1;
    default:
      return 2;  // halves, and the f16 scales of blocks
  }
}

}  // namespace

struct Executor::State {
  const Plan& plan;
  Device& device;
  ExecutorOptions options;
  std::unique_ptr<DeviceBuffer> static_arena;
  std::unique_ptr<DeviceBuffer> work_arena;
  std::unordered_map<std::string_view, Located> statics;
  std::vector<Prepared> programs;
  std::vector<std::byte> poison;                 // for devices whose memory the host cannot write
  const Prepared* last_run = nullptr;            // whose values are in the work arena
  std::vector<std::byte> staging;                // of weights that are made on the host
  std::vector<const StaticValue*> device_loads;  // in the order that the device was given them
  LoadReport loaded;
  int64_t allocations = 0;
  bool broken = false;

  bool host_memory() const { return device.facts().kind == DeviceKind::cpu; }
  Status check_device() const;
  Status allocate();
  Status load(const StaticSource& source);
  Status load_in_host_memory(std::vector<const StaticValue*> values, const StaticSource& source);
  Status load_value(const StaticValue& value, const StaticSource& source);
  Status load_by_device(const StaticValue& value, std::span<const StoredPart> parts);
  Status finish_loading(const StaticSource& source);
  Status bind_external(const StaticValue& value, const StaticSource& source);
  Status load_constants();
  void resolve(const ProgramPlan& planned);
  std::byte* address(const ProgramPlan& planned, ValueId id) const;
  Status fill_with_poison();
  Status launch(Prepared& program, std::span<double> step_seconds);
  Result<const Located*> find(std::string_view name, size_t bytes) const;
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
  if (options.poison && !host_memory()) {
    poison.assign(static_cast<size_t>(plan.work_bytes), static_cast<std::byte>(kPoisonByte));
  }
  loaded.allocation_seconds = seconds_since(begin);
  return {};
}

Status Executor::State::bind_external(const StaticValue& value, const StaticSource& source) {
  CHECK(source.external != nullptr, "external weights without a source");
  ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, source.external(value));
  if (static_cast<int64_t>(bytes.size()) != value.type.bytes()) {
    return bad_argument(
        fmt::format("{} bytes given where {} has {}", bytes.size(), value.type.text(), value.type.bytes()),
        value.name);
  }
  if (reinterpret_cast<uintptr_t>(bytes.data()) %
      static_cast<uintptr_t>(element_alignment(value.type.dtype))) {
    return unsupported("its bytes in the mapped file are not aligned to its elements", value.name,
                       "Load it into memory instead.");
  }
  statics[value.name] = {&value, const_cast<std::byte*>(bytes.data())};
  return {};
}

Status Executor::State::load(const StaticSource& source) {
  const Clock::time_point begin = Clock::now();
  std::vector<const StaticValue*> by_host;
  for (const StaticValue& value : plan.statics) {
    if (value.external) {
      RETURN_IF_ERROR(bind_external(value, source));
      continue;
    }
    statics[value.name] = {&value, static_arena ? static_arena->data() + value.offset : nullptr};
    if (value.role != Role::weight && value.role != Role::adapter) continue;
    if (host_memory())
      by_host.push_back(&value);
    else
      RETURN_IF_ERROR(load_value(value, source));
  }
  RETURN_IF_ERROR(load_in_host_memory(std::move(by_host), source));
  RETURN_IF_ERROR(finish_loading(source));
  loaded.seconds = seconds_since(begin);
  return load_constants();
}

// Threads take the largest of what is left; of several errors the first in the order of the plan is given.
Status Executor::State::load_in_host_memory(std::vector<const StaticValue*> values,
                                            const StaticSource& source) {
  if (values.empty()) return {};
  CHECK(source.load != nullptr, "weights without a source");
  for (const StaticValue* value : values) loaded.bytes += value->type.bytes();
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return values[i]->type.bytes(); });
  std::vector<Status> statuses(values.size());
  std::atomic<size_t> next = 0;
  ThreadPool threads(std::max(1, device.facts().threads));
  threads.run([&](int) {
    for (size_t taken = next++; taken < order.size(); taken = next++) {
      const StaticValue& value = *values[order[taken]];
      const auto size = static_cast<size_t>(value.type.bytes());
      statuses[order[taken]] = source.load(value, {statics.at(value.name).data, size});
    }
  });
  for (const Status& status : statuses) RETURN_IF_ERROR(status);
  return {};
}

// Of a device with memory of its own.
Status Executor::State::load_value(const StaticValue& value, const StaticSource& source) {
  if (source.parts) {
    const std::vector<StoredPart> parts = source.parts(value);
    if (!parts.empty()) return load_by_device(value, parts);
  }
  CHECK(source.load != nullptr, "weights without a source");
  const auto size = static_cast<size_t>(value.type.bytes());
  loaded.bytes += value.type.bytes();
  staging.resize(std::max(staging.size(), size));
  RETURN_IF_ERROR(source.load(value, {staging.data(), size}));
  return device.upload(statics.at(value.name).data, {staging.data(), size});
}

Status Executor::State::load_by_device(const StaticValue& value, std::span<const StoredPart> parts) {
  device_loads.push_back(&value);
  return device.load(statics.at(value.name).data, value.type.dtype, parts);
}

Status Executor::State::finish_loading(const StaticSource& source) {
  staging = {};
  if (device_loads.empty()) return {};
  ASSIGN_OR_RETURN(const Loaded by_device, device.finish_loading());
  loaded.bytes += by_device.bytes;
  if (!by_device.not_finite) return {};
  CHECK(source.not_finite != nullptr, "stored tensors without a source");
  const auto [load, element] = *by_device.not_finite;
  return source.not_finite(*device_loads.at(static_cast<size_t>(load)), element);
}

Status Executor::State::load_constants() {
  for (const ProgramPlan& planned : plan.programs) {
    for (const Constant& constant : planned.program.constants) {
      const Value& value = planned.program.value(constant.value);
      const Located& at = statics.at(value.name);
      if (constant.data.empty()) continue;
      if (value.type.dtype == DType::i32) {
        const std::vector<int32_t> indices(constant.data.begin(), constant.data.end());
        RETURN_IF_ERROR(device.upload(at.data, bytes_of(indices)));
      } else {
        RETURN_IF_ERROR(device.upload(at.data, bytes_of(constant.data)));
      }
    }
  }
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
  if (!host_memory()) return device.upload(work_arena->data(), poison);
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

Result<const Located*> Executor::State::find(std::string_view name, size_t bytes) const {
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
  RETURN_IF_ERROR(state->load(source));
  for (const ProgramPlan& planned : plan.programs) state->resolve(planned);
  for (Prepared& program : state->programs) {
    ASSIGN_OR_RETURN(program.launches, device.prepare(program.kernels, program.calls));
  }
  return std::unique_ptr<Executor>(new Executor(std::move(state)));
}

Status Executor::write(std::string_view name, std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const Located* at, state_->find(name, bytes.size()));
  if (at->value->external) return bad_argument("it stays in its file and cannot be written", at->value->name);
  if (bytes.empty()) return {};
  return state_->device.upload(at->data, bytes);
}

Status Executor::read(std::string_view name, std::span<std::byte> bytes) const {
  ASSIGN_OR_RETURN(const Located* at, state_->find(name, bytes.size()));
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
