#include "run/bench/bench_train.h"

#include <memory>
#include <random>
#include <utility>

#include "base/process_memory.h"
#include "models/routers.h"
#include "run/adapter_set.h"
#include "run/evaluate.h"
#include "run/session.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLearningRate = 1e-4;

AdapterOptions adapter_options(int64_t rank) {
  AdapterOptions options;
  options.rank = rank;
  options.alpha = 2.0 * static_cast<double>(rank);
  return options;
}

// Sequences of random ids, one after the other; each token predicts the next of its sequence.
MicroBatch random_batch(const TrainBenchSettings& settings, int64_t vocab, uint64_t seed) {
  const int64_t tokens = settings.batch * settings.seq;
  std::mt19937_64 generator(seed);
  MicroBatch batch = empty_batch(static_cast<int32_t>(tokens));
  for (int32_t& id : batch.ids) id = static_cast<int32_t>(generator() % static_cast<uint64_t>(vocab));
  for (int64_t i = 0; i < tokens; ++i) {
    const auto slot = static_cast<size_t>(i);
    const int64_t place = i % settings.seq;
    batch.positions[slot] = static_cast<int32_t>(place);
    batch.sequence_begin[slot] = static_cast<int32_t>(i - place);
    if (place + 1 < settings.seq) batch.labels[slot] = batch.ids[slot + 1];
  }
  batch.used_tokens = tokens;
  batch.trained_tokens = settings.batch * (settings.seq - 1);
  return batch;
}

Result<double> run_step(Session& session, const MicroBatch& batch, int64_t number,
                        const AdamWOptions& adamw) {
  write_batch(session, batch);
  const float seed = 1.0f / static_cast<float>(batch.trained_tokens);
  session.write(kLossSeedInput, std::span(&seed, 1));
  RETURN_IF_ERROR(session.run(kTrainStep));
  double sum = 0;
  for (float loss : session.output_f32(kTrainStep, kLossOutput)) sum += loss;
  session.write(kHyperInput, optimiser_hyper(kLearningRate, number, adamw));
  RETURN_IF_ERROR(session.run(kOptimiserStep));
  RETURN_IF_ERROR(session.status());
  return sum / static_cast<double>(batch.trained_tokens);
}

TrainSettings train_settings(const BenchModel& model, const TrainBenchSettings& settings) {
  TrainSettings out;
  static_cast<ProgramSettings&>(out) = settings;
  out.tokens = settings.batch * settings.seq;
  out.recompute_blocks = settings.recompute ? static_cast<int32_t>(model.spec.blocks.size()) : 0;
  return out;
}

}  // namespace

Result<TrainBench> bench_train(const BenchModel& model, Device& device, const TrainBenchSettings& settings) {
  if (settings.seq < 2) return bad_argument("a sequence of one token has nothing to predict", "--seq");
  AdapterOptions options = adapter_options(settings.rank);
  options.not_linear = parameter_routers(model.spec);
  ASSIGN_OR_RETURN(std::vector<AdapterModule> modules,
                   choose_modules(forward_program(model.spec, 1, settings), options));
  const AdapterSet adapter = new_adapter(std::move(modules), options, 0, 0);
  const TrainSettings train = train_settings(model, settings);
  TrainPrograms programs = train_programs(model.spec, adapter.modules, train);
  TrainBench out;
  out.tokens = train.tokens;
  out.flops = program_flops(programs.train_step, settings.seq) + program_flops(programs.optimiser_step);
  std::vector<Program> planned;
  planned.push_back(std::move(programs.train_step));
  planned.push_back(std::move(programs.optimiser_step));
  ASSIGN_OR_RETURN(Plan plan, plan_bench(std::move(planned), model, device, settings.without));
  out.arena_bytes = plan.arena_bytes();
  out.external_bytes = plan.external_bytes;
  out.planned = Clock::now();
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                   open_bench_session(std::move(plan), model, &adapter, device));
  out.load = session->executor().load_report();
  int64_t used_before = 0;
  for (int64_t step = 0; step < settings.warmup + settings.steps; ++step) {
    if (step == settings.warmup) used_before = device.memory_use().used_bytes;
    const MicroBatch batch = random_batch(settings, model.spec.vocab, static_cast<uint64_t>(step));
    const Clock::time_point begin = Clock::now();
    ASSIGN_OR_RETURN(const double loss, run_step(*session, batch, step + 1, train.adamw));
    const Clock::time_point end = Clock::now();
    out.losses.push_back(loss);
    if (step == 0) {
      out.first_step_began = begin;
      out.first_step_done = end;
    }
    if (step >= settings.warmup) {
      out.step_seconds.push_back(std::chrono::duration<double>(end - begin).count());
    }
  }
  out.peak_resident_bytes = peak_resident_bytes();
  out.memory = device.memory_use();
  out.grown_bytes = out.memory.used_bytes - used_before;
  if (settings.times_kernels) {
    ASSIGN_OR_RETURN(out.kernels,
                     time_kernels(session->executor(), *session->plan().find(kTrainStep), 2, settings.seq));
  }
  return out;
}

}  // namespace tenon
