#include "run/model_table.h"

#include <utility>
#include <vector>

#include "models/describe.h"
#include "models/routers.h"
#include "models/weight_map.h"
#include "plan/plan.h"
#include "run/cache_report.h"
#include "run/programs.h"

namespace tenon {
namespace {

constexpr int64_t kRank = 64, kTokens = 2 * 2048, kContext = 131072;

std::string attention_kernel(const Plan& plan) {
  for (const ProgramPlan& program : plan.programs) {
    for (const PlanStep& step : program.steps) {
      const std::string_view op = program.program.op(step.op).def->name;
      if (step.kernel && (op == "attention" || op == "biased_attention"))
        return std::string(step.kernel->name);
    }
  }
  return "-";
}

}  // namespace

int64_t parameter_count(const ModelSpec& spec) {
  int64_t count = 0;
  for (const WeightNeed& need : weights_needed(spec)) count += need.shape.elements();
  return count;
}

Result<ModelRow> model_row(const ModelSpec& spec, const DeviceFacts& facts, const Device& device) {
  ModelRow row;
  row.family = spec.family;
  row.mixers = mixers_text(spec);
  row.feed_forwards = feed_forwards_text(spec);
  row.parameters = parameter_count(spec);
  const CacheReport cache = cache_report(spec, DType::bf16, kContext);
  row.token_bytes = cache.token_bytes();
  row.state_bytes = cache.state_bytes();
  TrainSettings settings;
  settings.compute = DType::bf16;
  settings.tokens = kTokens;
  settings.recompute_blocks = static_cast<int32_t>(spec.blocks.size());
  AdapterOptions adapter;
  adapter.rank = kRank;
  adapter.not_linear = parameter_routers(spec);
  ASSIGN_OR_RETURN(const std::vector<AdapterModule> modules,
                   choose_modules(forward_program(spec, 1, settings), adapter));
  TrainPrograms programs = train_programs(spec, modules, settings);
  std::vector<Program> planned;
  planned.push_back(std::move(programs.train_step));
  planned.push_back(std::move(programs.optimiser_step));
  ASSIGN_OR_RETURN(const Plan plan, make_plan(std::move(planned), facts, device.kernels()));
  row.train_bytes = plan.arena_bytes();
  row.attention_kernel = attention_kernel(plan);
  return row;
}

}  // namespace tenon
