// Runs plans. prepare() allocates exactly the plan's arenas, once, and resolves every step to pointers; run()
// only launches: it makes no allocation, which a counter proves (base/allocation_counter.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/stored_part.h"
#include "device/device.h"
#include "plan/plan.h"

namespace tenon {

// Gives the executor the bytes of a static weight: for external ones a pointer that outlives the executor,
// for others it fills `destination` (host memory, laid out as `value.type`). load() is called from as many
// threads as the device's facts name, for a value each.
struct StaticSource {
  std::function<Result<std::span<const std::byte>>(const StaticValue& value)> external;
  std::function<Status(const StaticValue& value, std::span<std::byte> destination)> load;
  // Null, or, for devices with memory of their own: the parts of stored tensors that a weight is made of,
  // which the device loads and converts itself; none where load() must make it on the host. `not_finite` says
  // what is wrong with a weight whose element is not finite.
  std::function<std::vector<StoredPart>(const StaticValue& value)> parts;
  std::function<Error(const StaticValue& value, int64_t element)> not_finite;
};

// What allocating the arenas, and then loading weights and adapters, took.
struct LoadReport {
  int64_t bytes = 0;  // that went to the device, as they are stored
  double seconds = 0;
  double allocation_seconds = 0;  // mostly the system's, which zeroes each page before it gives it
};

struct ExecutorOptions {
  // Fills the work arena with NaN before each run, so that a test sees reads of bytes that nothing wrote (all
  // of them under a plan without reuse; else bytes may hold what an earlier value left).
  bool poison = false;
};

// One thread at a time. After a failure of the device nothing runs any more.
class Executor {
 public:
  // Loads every weight and adapter through `source`; optimiser state, gradient sums, caches and inputs start
  // at zero; constants come from the programs. `plan` and `device` must outlive the executor. Fails where the
  // plan's kernels are not this device's, or where external weights are and the device cannot read them.
  static Result<std::unique_ptr<Executor>> prepare(const Plan& plan, Device& device,
                                                   const StaticSource& source,
                                                   const ExecutorOptions& options = {});
  ~Executor();

  // Writes a static value (an input, or restored state). Sizes must agree; an external value cannot be
  // written.
  Status write(std::string_view name, std::span<const std::byte> bytes);
  // Reads a static value as it is now.
  Status read(std::string_view name, std::span<std::byte> bytes) const;
  // Reads an output of a program after it ran. Fails once another program has run, since both share the work
  // arena; outputs that live in static bytes stay readable.
  Status read_output(std::string_view program, std::string_view name, std::span<std::byte> bytes) const;

  // Runs one program. With `step_seconds` not empty (one entry per step) each step is timed.
  Status run(std::string_view program, std::span<double> step_seconds = {});

  const LoadReport& load_report() const;
  int64_t allocated_bytes() const;      // arenas: equals plan.arena_bytes()
  int64_t allocations_in_runs() const;  // heap allocations seen inside run() so far: must stay 0

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tenon
