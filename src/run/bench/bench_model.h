// What a benchmark runs: a model from its files, or one that a configuration describes, with random weights.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "run/model.h"
#include "run/session.h"

namespace tenon {

struct BenchModel {
  ModelSpec spec;
  std::optional<Model> model;  // none: random weights
};

// Errors as open_model.
Result<BenchModel> open_bench_model(const std::string& path);
// `config` names a config.json; no weights are read. Errors: io, bad_file, unsupported.
Result<BenchModel> random_bench_model(const std::string& config);

// The plan of programs over the model, and a session that runs it. Both, and `adapter` (null: the programs
// have none), must outlive the session. Errors as plan_programs and Session::open.
Result<Plan> plan_bench(std::vector<Program> programs, const BenchModel& model, const Device& device,
                        const std::vector<std::string>& without);
Result<std::unique_ptr<Session>> open_bench_session(Plan plan, const BenchModel& model,
                                                    const AdapterSet* adapter, Device& device);

}  // namespace tenon
