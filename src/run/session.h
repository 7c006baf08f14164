// A plan prepared on a device with a model's weights and an adapter's values in it: the one way from programs
// to running. Typed reads and writes of inputs, outputs and state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "exec/executor.h"
#include "plan/plan.h"
#include "run/adapter_set.h"
#include "run/model.h"

namespace tenon {

// Which weights can be used where they lie in the mapped file: stored in the program's dtype and order,
// aligned for it, on a device that reads host memory.
std::vector<std::string> external_weights(const Model& model, std::span<const Program> programs,
                                          const Device& device);

// Makes packed attention and its gradient run by the kernels called `name` ("flash" of attention_flash), or
// not at all: an entry of the names to leave out. "auto" leaves the choice to the plan.
void choose_attention(std::string_view name, std::vector<std::string>& without);
// The kernels that serve packed attention in a plan, "attention_flash, attention_grad_flash"; empty where it
// has none.
std::string attention_kernels(const Plan& plan);

// The plan of programs over a model. `without` names kernels not to use; names of passes are left to who
// built the programs. Errors as make_plan, and bad_argument for a name that is neither.
Result<Plan> plan_programs(std::vector<Program> programs, const Model& model, const Device& device,
                           const std::vector<std::string>& without);
// The same; where `model` is null, no weight lies in a file.
Result<Plan> plan_programs(std::vector<Program> programs, const Model* model, const Device& device,
                           const std::vector<std::string>& without);

// Fails with over_budget where a device with memory of its own has less free than the plan needs.
// Session::open begins with it, so that nothing is loaded in vain.
Status check_device_memory(const Plan& plan, const Device& device);

class Session {
 public:
  // `model`, `adapter` and `device` must outlive the session; `adapter` is null where the programs have none.
  static Result<std::unique_ptr<Session>> open(Plan plan, const Model& model, const AdapterSet* adapter,
                                               Device& device);
  // Weights that come from elsewhere: `weight` fills memory that is laid out as the value. None may be
  // external.
  using WeightFiller = std::function<Status(const StaticValue& value, std::span<std::byte> destination)>;
  static Result<std::unique_ptr<Session>> open(Plan plan, const AdapterSet* adapter, Device& device,
                                               WeightFiller weight);

  const Plan& plan() const { return plan_; }
  Executor& executor() { return *executor_; }

  // Bugs of the caller (a name or size that the programs do not have) are checked. What is left are errors of
  // the device: the first is kept, reads then give zeros, and run() and status() return it.
  void write(std::string_view name, std::span<const int32_t> values);
  void write(std::string_view name, std::span<const float> values);
  Status run(std::string_view program);
  Status status() const { return failure_; }
  std::vector<float> read_state(std::string_view name) const;
  std::vector<float> output_f32(std::string_view program, std::string_view name) const;
  std::vector<int32_t> output_i32(std::string_view program, std::string_view name) const;

 private:
  explicit Session(Plan plan) : plan_(std::move(plan)) {}
  void keep_failure(const Status& status, std::string_view name) const;
  template <typename T>
  std::vector<T> output(std::string_view program, std::string_view name) const;

  Plan plan_;
  std::unique_ptr<Executor> executor_;
  mutable Status failure_;  // of the device, the first
};

}  // namespace tenon
