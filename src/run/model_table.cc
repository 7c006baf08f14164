#include "run/model_table.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "models/weight_map.h"
#include "plan/plan.h"
#include "run/cache_report.h"
#include "run/programs.h"

namespace tenon {
namespace {

constexpr int64_t kRank = 64, kTokens = 2 * 2048;

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string attend_name(const AttendSpec& attend, const char* plain) {
  if (attend.window > 0) return fmt::format("sliding {}", plain);
  if (attend.chunk > 0) return fmt::format("chunked {}", plain);
  return plain;
}

std::string mixer_name(const MixerSpec& mixer) {
  return std::visit(
      Overloaded{[](const std::monostate&) { return std::string(); },
                 [](const AttentionSpec& a) { return attend_name(a.attend, "attention"); },
                 [](const LatentAttentionSpec& a) { return attend_name(a.attend, "latent attention"); },
                 [](const ShortConvSpec&) { return std::string("short convolution"); },
                 [](const DeltaSpec&) { return std::string("gated delta"); },
                 [](const Mamba2Spec&) { return std::string("Mamba-2"); },
                 [](const MambaSpec&) { return std::string("Mamba"); },
                 [](const FixedDecaySpec&) { return std::string("lightning attention"); },
                 [](const RecurrentUnitSpec&) { return std::string("RG-LRU"); },
                 [](const AttentionExpertsSpec& a) { return attend_name(a.attend, "experts of attention"); }},
      mixer);
}

// "12 attention, 36 gated delta", in the order in which they first come.
class Counts {
 public:
  void add(std::string name) {
    if (name.empty()) return;
    for (auto& [known, count] : counts_) {
      if (known == name) {
        ++count;
        return;
      }
    }
    counts_.emplace_back(std::move(name), 1);
  }
  std::string text() const {
    std::string out;
    for (const auto& [name, count] : counts_) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, name);
    return out.empty() ? "-" : out;
  }

 private:
  std::vector<std::pair<std::string, int>> counts_;
};

std::string attention_kernel(const Plan& plan) {
  for (const ProgramPlan& program : plan.programs) {
    for (const PlanStep& step : program.steps) {
      const std::string_view op = program.program.op(step.op).def->name;
      if (step.kernel && (op == "attention" || op == "biased_attention")) return std::string(step.kernel->name);
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

std::string mixers_text(const ModelSpec& spec) {
  Counts counts;
  for (const BlockSpec& block : spec.blocks) {
    counts.add(mixer_name(block.mixer));
    counts.add(mixer_name(block.beside));
  }
  return counts.text();
}

std::string feed_forwards_text(const ModelSpec& spec) {
  Counts counts;
  for (const BlockSpec& block : spec.blocks) {
    if (std::holds_alternative<MlpSpec>(block.feed_forward)) counts.add("dense");
    if (std::holds_alternative<MoeSpec>(block.feed_forward) || block.aside || block.shortcut) counts.add("experts");
  }
  return counts.text();
}

Result<ModelRow> model_row(const ModelSpec& spec, const DeviceFacts& facts, const Device& device) {
  ModelRow row;
  row.family = spec.family;
  row.mixers = mixers_text(spec);
  row.feed_forwards = feed_forwards_text(spec);
  row.parameters = parameter_count(spec);
  const CacheReport cache = cache_report(spec, DType::bf16);
  row.token_bytes = cache.token_bytes();
  row.state_bytes = cache.state_bytes();
  TrainSettings settings;
  settings.compute = DType::bf16;
  settings.tokens = kTokens;
  settings.recompute_blocks = static_cast<int32_t>(spec.blocks.size());
  AdapterOptions adapter;
  adapter.rank = kRank;
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
