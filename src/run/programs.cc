#include "run/programs.h"

#include <algorithm>

#include "ir/verify.h"
#include "ops/cast.h"
#include "ops/fill.h"
#include "passes/differentiate.h"
#include "passes/fuse_addend.h"
#include "passes/fuse_loss_gradient.h"
#include "passes/fuse_low_rank.h"
#include "passes/recompute.h"
#include "passes/recompute_cheap.h"

namespace tenon {
namespace {

Program checked(Program program) {
  const Status status = verify(program);
  CHECK(status.ok(), status.ok() ? "" : status.error().text());
  return program;
}

ForwardOptions forward_options(int64_t tokens, const ProgramSettings& settings) {
  ForwardOptions options;
  options.tokens = tokens;
  options.compute = settings.compute;
  options.weight_dtype = settings.compute;
  options.weight_dtypes = settings.weights;
  return options;
}

// Forward, adapters and loss; outputs kLossOutput and kPredictedOutput.
Program loss_program(const ModelSpec& spec, const std::vector<AdapterModule>& modules, int64_t tokens,
                     const ProgramSettings& settings, AdapterDropout dropout) {
  Program program;
  Builder b(program);
  const ForwardOptions options = forward_options(tokens, settings);
  const ValueId hidden = build_forward(b, spec, options);
  const LossOutputs loss = build_loss(b, spec, hidden, options);
  b.mark_output(loss.loss, kLossOutput);
  b.mark_output(loss.predicted, kPredictedOutput);
  program = checked(std::move(program));
  return modules.empty() ? program : checked(add_adapters(program, modules, dropout));
}

Program fused(Program program, const ProgramSettings& settings) {
  if (settings.uses(kFuseAddendPass)) program = checked(fuse_addend(program));
  return settings.uses(kFuseLowRankPass) ? checked(fuse_low_rank(program)) : program;
}

// Appends the gradients of sum(loss) * seed with respect to the named statics.
std::vector<ValueId> append_gradients(Program& program, std::span<const ValueId> wrt) {
  const ValueId loss = program.find(kLossOutput);
  Builder b(program);
  b.set_role(Role::gradient);
  b.set_name("loss seed");
  const ValueId scale = b.add_static(Role::input, kLossSeedInput, {DType::f32, Shape{1}});
  const ValueId seed = fill(b, scale, b.shape(loss));
  std::vector<ValueId> gradients = differentiate(program, loss, seed, wrt);
  program = checked(std::move(program));
  return gradients;
}

std::vector<TrainedValue> trained_values(const std::vector<AdapterModule>& modules) {
  std::vector<TrainedValue> trained;
  for (const AdapterModule& module : modules) {
    trained.push_back({module.a_name(), module.a_shape()});
    trained.push_back({module.b_name(), module.b_shape()});
  }
  return trained;
}

}  // namespace

bool ProgramSettings::uses(std::string_view pass) const {
  return std::find(without.begin(), without.end(), pass) == without.end();
}

Program forward_program(const ModelSpec& spec, int64_t tokens, const ProgramSettings& settings) {
  Program program;
  program.name = "forward";
  Builder b(program);
  build_forward(b, spec, forward_options(tokens, settings));
  return checked(std::move(program));
}

TrainPrograms train_programs(const ModelSpec& spec, const std::vector<AdapterModule>& modules,
                             const TrainSettings& settings) {
  TrainPrograms programs;
  programs.trained = trained_values(modules);
  Program step = loss_program(spec, modules, settings.tokens, settings, {settings.dropout});
  std::vector<ValueId> wrt;
  for (const TrainedValue& value : programs.trained) wrt.push_back(step.find(value.name));
  const std::vector<ValueId> gradients = append_gradients(step, wrt);
  accumulate_gradients(step, programs.trained, gradients);
  step = checked(std::move(step));
  if (settings.uses(kFuseLossGradientPass)) step = checked(fuse_loss_gradient(step));
  step = fused(std::move(step), settings);
  if (settings.uses(kRecomputeCheapPass)) step = checked(recompute_cheap(step));
  if (settings.recompute_blocks > 0) step = checked(recompute_blocks(step, settings.recompute_blocks));
  step.name = kTrainStep;
  programs.train_step = std::move(step);
  programs.optimiser_step = checked(build_optimiser_step(programs.trained, settings.adamw));
  programs.evaluate = evaluate_program(spec, modules, settings.tokens, settings);
  return programs;
}

Program evaluate_program(const ModelSpec& spec, const std::vector<AdapterModule>& modules, int64_t tokens,
                         const ProgramSettings& settings) {
  Program program = fused(loss_program(spec, modules, tokens, settings, {}), settings);
  program.name = kEvaluate;
  return program;
}

Program probe_program(const ModelSpec& spec, const std::vector<AdapterModule>& modules, int64_t tokens,
                      ProbeGradients gradients, const ProgramSettings& settings) {
  Program program;
  Builder b(program);
  const ForwardOptions options = forward_options(tokens, settings);
  const ValueId hidden = build_forward(b, spec, options);
  b.mark_output(build_logits(b, spec, hidden, tokens, options), kLogitsOutput);
  const LossOutputs loss = build_loss(b, spec, hidden, options);
  b.mark_output(loss.loss, kLossOutput);
  program = checked(std::move(program));
  if (!modules.empty()) program = checked(add_adapters(program, modules));
  if (gradients != ProbeGradients::none) {
    const Role role = gradients == ProbeGradients::weights ? Role::weight : Role::adapter;
    std::vector<ValueId> wrt;
    std::vector<std::string> names;
    for (size_t i = 0; i < program.values.size(); ++i) {
      const Value& value = program.values[i];
      if (value.role != role || value.producer.valid()) continue;
      wrt.push_back(ValueId{static_cast<int32_t>(i)});
      names.push_back(value.name);
    }
    const std::vector<ValueId> found = append_gradients(program, wrt);
    Builder names_builder(program);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].valid()) continue;
      const bool wide = names_builder.dtype(found[i]) == DType::f32;
      names_builder.mark_output(wide ? found[i] : cast(names_builder, found[i], DType::f32),
                                kGradientPrefix + names[i]);
    }
  }
  program = fused(checked(std::move(program)), settings);
  program.name = kLogits;
  return program;
}

Program decode_program(const ModelSpec& spec, const std::vector<AdapterModule>& modules, std::string name,
                       const DecodeSettings& settings) {
  Program program;
  Builder b(program);
  ForwardOptions options = forward_options(settings.tokens, settings);
  options.cache = settings.cache;
  options.input_prefix = name + ".";
  const ValueId hidden = build_forward(b, spec, options);
  b.mark_output(build_logits(b, spec, hidden, settings.rows, options), kLogitsOutput);
  program = checked(std::move(program));
  if (!modules.empty()) program = checked(add_adapters(program, modules));
  program = fused(std::move(program), settings);
  program.name = std::move(name);
  return program;
}

}  // namespace tenon
