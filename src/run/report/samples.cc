#include "run/report/samples.h"

#include <algorithm>
#include <memory>

#include "plan/fit.h"
#include "run/generator.h"
#include "run/train/stream_settings.h"

namespace tenon {
namespace {

constexpr int64_t kMostNewTokens = 64;

std::vector<int32_t> prompt_ids(const TokenizedExample& example) {
  const auto first =
      std::find_if(example.labels.begin(), example.labels.end(), [](int32_t id) { return id != kUntrained; });
  return {example.ids.begin(), example.ids.begin() + (first - example.labels.begin())};
}

std::vector<int32_t> answer_ids(const TokenizedExample& example) {
  std::vector<int32_t> ids;
  for (const int32_t id : example.labels) {
    if (id != kUntrained)
      ids.push_back(id);
    else if (!ids.empty())
      break;
  }
  return ids;
}

}  // namespace

Result<std::vector<Sample>> sample_prompts(const TrainJob& job, int64_t count) {
  std::vector<Sample> samples;
  const bool has_part = job.recipe.eval_fraction > 0;
  const Dataset& dataset = job.eval_data ? *job.eval_data : job.data;
  StreamSettings settings = stream_settings(job, has_part ? DataPart::eval : DataPart::all);
  if (job.eval_data) settings.part = DataPart::all;
  for (int64_t row = 0; row < dataset.rows() && static_cast<int64_t>(samples.size()) < count; ++row) {
    if (!in_data_part(settings, row)) continue;
    ASSIGN_OR_RETURN(const LoadedRow loaded, load_row(dataset, row, settings.rows));
    const TokenizedExample& example = loaded.tokens.example;
    if (loaded.tokens.skipped || example.trained_tokens() == 0) continue;
    Sample sample;
    sample.ids = prompt_ids(example);
    if (sample.ids.empty()) continue;
    sample.prompt = job.text.tokenizer.decode(sample.ids);
    sample.expected = job.text.tokenizer.decode(answer_ids(example));
    samples.push_back(std::move(sample));
  }
  return samples;
}

Status answer_samples(const TrainJob& job, Device& device, const AdapterSet& adapter,
                      std::string Sample::*field, std::vector<Sample>& samples) {
  if (samples.empty()) return {};
  GeneratorSettings settings;
  static_cast<ProgramSettings&>(settings) = recipe_program_settings(job.recipe, job.model, device.facts());
  for (const Sample& sample : samples)
    settings.context_tokens = std::max(settings.context_tokens, static_cast<int64_t>(sample.ids.size()));
  settings.context_tokens += kMostNewTokens;
  ASSIGN_OR_RETURN(const Plan plan,
                   plan_programs(generator_programs(job.model.spec, adapter.modules, settings), job.model,
                                 device, settings.without));
  if (!fit(needed_bytes(plan), job.plan.budget_bytes).fits)
    return over_budget("generating samples does not fit the memory of the run", "--samples",
                       "Leave it away.");
  ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                   Generator::open(job.model, &adapter, device, settings));
  for (Sample& sample : samples) {
    generator->reset();
    ASSIGN_OR_RETURN(const Reply reply, generate(*generator, sample.ids, kMostNewTokens,
                                                 job.text.tokenizer.special().eos, {}, {}));
    sample.*field = job.text.tokenizer.decode(reply.ids);
  }
  return {};
}

}  // namespace tenon
