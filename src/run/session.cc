#include "run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <unordered_set>

#include "models/weight_map.h"
#include "run/programs.h"

namespace tenon {
namespace {

const Value* find_value(const Plan& plan, std::string_view program, std::string_view name) {
  const ProgramPlan* p = plan.find(program);
  CHECK(p != nullptr, program);
  const ValueId id = p->program.find(name);
  CHECK(id.valid(), name);
  return &p->program.value(id);
}

template <typename T>
std::vector<T> read_output(const Plan& plan, const Executor& executor, std::string_view program,
                           std::string_view name) {
  std::vector<T> out(static_cast<size_t>(find_value(plan, program, name)->type.elements()));
  const Status status = executor.read_output(program, name, std::as_writable_bytes(std::span(out)));
  CHECK(status.ok(), name);
  return out;
}

Status load_adapter(const AdapterSet* adapter, const StaticValue& value, std::span<std::byte> destination) {
  CHECK(adapter != nullptr, value.name);
  const std::vector<float>& values = adapter->values.at(value.name);
  CHECK(values.size() * 4 == destination.size(), value.name);
  std::memcpy(destination.data(), values.data(), destination.size());
  return {};
}

Status load_from_files(const Model& model, const StaticValue& value, std::span<std::byte> destination) {
  const WeightSource* source = model.weights.find(value.name);
  CHECK(source != nullptr, value.name);
  return load_weight(model.checkpoint, *source, value.type.dtype, destination);
}

// A name that means nothing would leave out nothing, in silence.
Status check_without(const std::vector<std::string>& without, std::span<const KernelDef> kernels) {
  std::vector<std::string_view> known(std::begin(kOptionalPasses), std::end(kOptionalPasses));
  for (const KernelDef& kernel : kernels) known.push_back(kernel.name);
  for (const std::string& name : without) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return bad_argument(fmt::format("'{}' is neither a pass nor a kernel", name), "--without",
                        fmt::format("The passes are {}; `tenon kernels` lists the kernels.",
                                    fmt::join(kOptionalPasses, ", ")));
  }
  return {};
}

}  // namespace

std::vector<std::string> external_weights(const Model& model, std::span<const Program> programs,
                                          const Device& device) {
  std::vector<std::string> names;
  if (!device.reads_host_memory()) return names;
  std::unordered_set<std::string_view> seen;
  for (const Program& program : programs) {
    for (const Value& value : program.values) {
      if (value.role != Role::weight || value.producer.valid() || !seen.insert(value.name).second) continue;
      const WeightSource* source = model.weights.find(value.name);
      CHECK(source != nullptr, value.name);
      const auto address = reinterpret_cast<uintptr_t>(model.checkpoint.bytes(source->tensor()).data());
      const uintptr_t alignment = is_block_quantised(source->stored())
                                      ? 2
                                      : static_cast<uintptr_t>(dtype_info(source->stored()).block_bytes);
      if (is_stored_as(*source, value.type.dtype) && address % alignment == 0) names.push_back(value.name);
    }
  }
  return names;
}

Result<Plan> plan_programs(std::vector<Program> programs, const Model* model, const Device& device,
                           const std::vector<std::string>& without) {
  RETURN_IF_ERROR(check_without(without, device.kernels()));
  PlanOptions options;
  if (model != nullptr) options.external = external_weights(*model, programs, device);
  options.without_kernels = without;
  return make_plan(std::move(programs), device.facts(), device.kernels(), options);
}

Result<Plan> plan_programs(std::vector<Program> programs, const Model& model, const Device& device,
                           const std::vector<std::string>& without) {
  return plan_programs(std::move(programs), &model, device, without);
}

Result<std::unique_ptr<Session>> Session::open(Plan plan, const Model& model, const AdapterSet* adapter,
                                               Device& device) {
  std::unique_ptr<Session> session(new Session(std::move(plan)));
  StaticSource source;
  source.external = [&model](const StaticValue& value) -> Result<std::span<const std::byte>> {
    return model.checkpoint.bytes(model.weights.find(value.name)->tensor());
  };
  source.load = [&model, adapter](const StaticValue& value, std::span<std::byte> destination) {
    if (value.role == Role::adapter) return load_adapter(adapter, value, destination);
    return load_from_files(model, value, destination);
  };
  ASSIGN_OR_RETURN(session->executor_, Executor::prepare(session->plan_, device, source));
  return session;
}

Result<std::unique_ptr<Session>> Session::open(Plan plan, const AdapterSet* adapter, Device& device,
                                               WeightFiller weight) {
  std::unique_ptr<Session> session(new Session(std::move(plan)));
  StaticSource source;
  source.load = [adapter, weight](const StaticValue& value, std::span<std::byte> destination) {
    if (value.role == Role::adapter) return load_adapter(adapter, value, destination);
    return weight(value, destination);
  };
  ASSIGN_OR_RETURN(session->executor_, Executor::prepare(session->plan_, device, source));
  return session;
}

void Session::write(std::string_view name, std::span<const int32_t> values) {
  const Status status = executor_->write(name, std::as_bytes(values));
  CHECK(status.ok(), name);
}

void Session::write(std::string_view name, std::span<const float> values) {
  const Status status = executor_->write(name, std::as_bytes(values));
  CHECK(status.ok(), name);
}

std::vector<float> Session::read_state(std::string_view name) const {
  for (const StaticValue& value : plan_.statics) {
    if (value.name != name) continue;
    std::vector<float> out(static_cast<size_t>(value.type.elements()));
    const Status status = executor_->read(name, std::as_writable_bytes(std::span(out)));
    CHECK(status.ok(), name);
    return out;
  }
  CHECK(false, name);
}

std::vector<float> Session::output_f32(std::string_view program, std::string_view name) const {
  return read_output<float>(plan_, *executor_, program, name);
}

std::vector<int32_t> Session::output_i32(std::string_view program, std::string_view name) const {
  return read_output<int32_t>(plan_, *executor_, program, name);
}

}  // namespace tenon
