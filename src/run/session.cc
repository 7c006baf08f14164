#include "run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/bytes.h"
#include "models/weight_map.h"
#include "models/weight_parts.h"
#include "plan/fit.h"
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

// The bytes of an adapter's value, f32 in the program as in the set.
std::span<const std::byte> adapter_bytes(const AdapterSet* adapter, const StaticValue& value) {
  CHECK(adapter != nullptr, value.name);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(adapter->values.at(value.name)));
  CHECK(static_cast<int64_t>(bytes.size()) == value.type.bytes(), value.name);
  return bytes;
}

StoredPart adapter_part(const AdapterSet* adapter, const StaticValue& value) {
  StoredPart part;
  part.bytes = adapter_bytes(adapter, value);
  part.row_bytes = value.type.bytes();
  part.unchanged = true;
  part.rows = 1, part.columns = value.type.elements();
  return part;
}

Status load_adapter(const AdapterSet* adapter, const StaticValue& value, std::span<std::byte> destination) {
  std::ranges::copy(adapter_bytes(adapter, value), destination.begin());
  return {};
}

Status load_from_files(const Model& model, const StaticValue& value, std::span<std::byte> destination) {
  const WeightSource* source = model.weights.find(value.name);
  CHECK(source != nullptr, value.name);
  return load_weight(model.checkpoint, *source, value.type.dtype, destination);
}

// "attention=NAME" among the names to leave out: every kernel of packed attention but those of that name.
constexpr std::string_view kAttentionRule = "attention=";
constexpr std::string_view kAttentionOps[] = {"attention", "attention_grad", "biased_attention",
                                              "biased_attention_grad"};

// "flash" of attention's kernel "attention_flash"; empty for kernels of other ops.
std::string_view attention_name(const KernelDef& kernel) {
  for (std::string_view op : kAttentionOps) {
    if (kernel.op == op && kernel.name.starts_with(op) && kernel.name.size() > op.size()) {
      return kernel.name.substr(op.size() + 1);
    }
  }
  return {};
}

Status forbid_other_attention(std::string_view name, std::span<const KernelDef> kernels,
                              std::vector<std::string>& forbidden) {
  std::vector<std::string_view> known;
  for (const KernelDef& kernel : kernels) {
    const std::string_view its = attention_name(kernel);
    if (its.empty()) continue;
    if (its != name) forbidden.emplace_back(kernel.name);
    if (std::find(known.begin(), known.end(), its) == known.end()) known.push_back(its);
  }
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  return bad_argument(fmt::format("no attention kernel of this device is called '{}'", name), "--attention",
                      fmt::format("There are: {}.", fmt::join(known, ", ")));
}

// Names of kernels that `without` forbids.
Result<std::vector<std::string>> forbidden_kernels(const std::vector<std::string>& without,
                                                   std::span<const KernelDef> kernels) {
  std::vector<std::string> forbidden;
  for (const std::string& name : without) {
    if (!name.starts_with(kAttentionRule)) {
      forbidden.push_back(name);
      continue;
    }
    RETURN_IF_ERROR(
        forbid_other_attention(std::string_view(name).substr(kAttentionRule.size()), kernels, forbidden));
  }
  return forbidden;
}

// A name that means nothing would leave out nothing, in silence.
Status check_without(const std::vector<std::string>& without, std::span<const KernelDef> kernels) {
  std::vector<std::string_view> known(std::begin(kOptionalPasses), std::end(kOptionalPasses));
  for (const KernelDef& kernel : kernels) known.push_back(kernel.name);
  for (const std::string& name : without) {
    if (name.starts_with(kAttentionRule)) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return bad_argument(fmt::format("'{}' is neither a pass nor a kernel", name), "--without",
                        fmt::format("The passes are {}; `tenon kernels` lists the kernels.",
                                    fmt::join(kOptionalPasses, ", ")));
  }
  return {};
}

}  // namespace

void choose_attention(std::string_view name, std::vector<std::string>& without) {
  if (name != "auto") without.push_back(std::string(kAttentionRule) + std::string(name));
}

std::string attention_kernels(const Plan& plan) {
  std::vector<std::string_view> names;
  for (const ProgramPlan& program : plan.programs) {
    for (const PlanStep& step : program.steps) {
      if (step.kernel == nullptr || attention_name(*step.kernel).empty()) continue;
      if (std::find(names.begin(), names.end(), step.kernel->name) == names.end()) {
        names.push_back(step.kernel->name);
      }
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

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
  ASSIGN_OR_RETURN(options.without_kernels, forbidden_kernels(without, device.kernels()));
  return make_plan(std::move(programs), device.facts(), device.kernels(), options);
}

Result<Plan> plan_programs(std::vector<Program> programs, const Model& model, const Device& device,
                           const std::vector<std::string>& without) {
  return plan_programs(std::move(programs), &model, device, without);
}

Status check_device_memory(const Plan& plan, const Device& device) {
  if (device.reads_host_memory()) return {};
  const FitVerdict verdict = fit(needed_bytes(plan), device.facts().memory_bytes);
  if (verdict.fits) return {};
  return over_budget(
      fmt::format("{} are needed, {} more than the {} that are free", format_bytes(verdict.needed_bytes),
                  format_bytes(verdict.shortfall_bytes), format_bytes(verdict.budget_bytes)),
      device.facts().name, "End other programs on it, or ask for less.");
}

Result<std::unique_ptr<Session>> Session::open(Plan plan, const Model& model, const AdapterSet* adapter,
                                               Device& device) {
  RETURN_IF_ERROR(check_device_memory(plan, device));
  std::unique_ptr<Session> session(new Session(std::move(plan)));
  StaticSource source;
  source.external = [&model](const StaticValue& value) -> Result<std::span<const std::byte>> {
    return model.checkpoint.bytes(model.weights.find(value.name)->tensor());
  };
  source.parts = [&model, adapter](const StaticValue& value) -> std::vector<StoredPart> {
    if (value.role == Role::adapter) return {adapter_part(adapter, value)};
    return weight_parts(model.checkpoint, *model.weights.find(value.name), value.type.dtype);
  };
  source.not_finite = [&model](const StaticValue& value, int64_t element) {
    return not_finite_error(model.checkpoint, *model.weights.find(value.name), element);
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
  RETURN_IF_ERROR(check_device_memory(plan, device));
  std::unique_ptr<Session> session(new Session(std::move(plan)));
  StaticSource source;
  source.parts = [adapter](const StaticValue& value) -> std::vector<StoredPart> {
    if (value.role == Role::adapter) return {adapter_part(adapter, value)};
    return {};
  };
  source.load = [adapter, weight](const StaticValue& value, std::span<std::byte> destination) {
    if (value.role == Role::adapter) return load_adapter(adapter, value, destination);
    return weight(value, destination);
  };
  ASSIGN_OR_RETURN(session->executor_, Executor::prepare(session->plan_, device, source));
  return session;
}

void Session::keep_failure(const Status& status, std::string_view name) const {
  if (status.ok()) return;
  CHECK(status.error().code == ErrorCode::device, name);
  if (failure_.ok()) failure_ = status;
}

Status Session::run(std::string_view program) {
  RETURN_IF_ERROR(failure_);
  return executor_->run(program);
}

void Session::write(std::string_view name, std::span<const int32_t> values) {
  keep_failure(executor_->write(name, std::as_bytes(values)), name);
}

void Session::write(std::string_view name, std::span<const float> values) {
  keep_failure(executor_->write(name, std::as_bytes(values)), name);
}

std::vector<float> Session::read_state(std::string_view name) const {
  for (const StaticValue& value : plan_.statics) {
    if (value.name != name) continue;
    std::vector<float> out(static_cast<size_t>(value.type.elements()));
    keep_failure(executor_->read(name, std::as_writable_bytes(std::span(out))), name);
    return out;
  }
  CHECK(false, name);
}

template <typename T>
std::vector<T> Session::output(std::string_view program, std::string_view name) const {
  std::vector<T> out(static_cast<size_t>(find_value(plan_, program, name)->type.elements()));
  keep_failure(executor_->read_output(program, name, std::as_writable_bytes(std::span(out))), name);
  return out;
}

std::vector<float> Session::output_f32(std::string_view program, std::string_view name) const {
  return output<float>(program, name);
}

std::vector<int32_t> Session::output_i32(std::string_view program, std::string_view name) const {
  return output<int32_t>(program, name);
}

}  // namespace tenon
