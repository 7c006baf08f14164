#include "tests/tiny_run.h"

#include <fmt/format.h>

#include <bit>
#include <cstdlib>

#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "io/write_file.h"
#include "run/train/resume.h"
#include "run/train/run_paths.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

Result<TrainResult> run_job(TrainJob& job, Device& device, Result<RunFolder> folder, int64_t stop_after) {
  if (!folder.ok()) return folder.error();
  int64_t last = 0;
  TrainObserver display;
  display.step = [&](const StepReport& report) {
    last = report.step;
    return Status();
  };
  display.should_stop = [&] { return stop_after > 0 && last >= stop_after; };
  return train_in_folder(job, device, *folder, display);
}

std::string bits(double value) {
  return fmt::format("{:016x}", std::bit_cast<uint64_t>(value));
}

}  // namespace

void TinyRun::SetUp() {
  const std::string command = TENON_SOURCE_DIR "/tests/make_tiny_model " + model();
  ASSERT_EQ(std::system(command.c_str()), 0);
}

std::string TinyRun::write_rows(int rows) const {
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const char letter = static_cast<char>('a' + i % 26);
    text += fmt::format(R"({{"messages": [{{"role": "user", "content": "say {0}"}}, {{"role": "assistant", )"
                        R"("content": "it is {1}"}}]}})",
                        letter, std::string(static_cast<size_t>(1 + i % 5), letter)) +
            "\n";
  }
  folder_.put("rows.jsonl", text);
  return folder_ / "rows.jsonl";
}

TrainRecipe TinyRun::recipe(std::string_view run) const {
  TrainRecipe r;
  r.model = model();
  r.data = {folder_ / "rows.jsonl"};
  r.out = run_path(run);
  r.steps = 9;
  r.lr = 5e-3;
  r.schedule = "cosine";
  r.warmup_steps = 2;
  r.rank = 4;
  r.alpha = 8;
  r.dropout = 0.1;
  r.tokens_per_step = 96;
  r.accumulate = 2;
  r.eval_fraction = 0.3;
  r.eval_every = 2;
  r.compute = "f32";
  r.threads = 1;
  r.seed = 7;
  r.checkpoint_every = "3";
  return r;
}

Result<TrainResult> TinyRun::begin(const TrainRecipe& recipe, int64_t stop_after) {
  RETURN_IF_ERROR(check_run_folder(recipe.out, recipe.overwrite));
  const auto device = test_device(static_cast<int>(recipe.threads));
  ASSIGN_OR_RETURN(const auto job, prepare_training(recipe, *device));
  return run_job(*job, *device, RunFolder::create(*job), stop_after);
}

Result<TrainResult> TinyRun::resume(const std::string& run, int64_t stop_after,
                                    const std::function<void(TrainRecipe&)>& change) {
  ASSIGN_OR_RETURN(ResumePoint point, find_resume_point(run));
  if (change) change(point.recipe);
  const auto device = test_device(static_cast<int>(point.recipe.threads));
  ASSIGN_OR_RETURN(const auto job, prepare_training(point.recipe, *device));
  return run_job(*job, *device, RunFolder::resume(*job), stop_after);
}

Result<RunBits> bits_of(const std::string& run) {
  RunBits out;
  ASSIGN_OR_RETURN(out.adapter, read_file(join_path(run_adapter_folder(run), "adapter_model.safetensors")));
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, checkpoint_steps(run));
  if (steps.empty()) return not_found("no checkpoint", run);
  const std::string checkpoint = checkpoint_path(run, steps.back());
  ASSIGN_OR_RETURN(const SavedState state, read_state(checkpoint));
  out.progress = state.progress;
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(checkpoint));
  ASSIGN_OR_RETURN(const SafetensorsHeader header, parse_safetensors(file.bytes()));
  const auto begin = static_cast<size_t>(header.tensors.front().offset_bytes);
  out.optimiser.assign(reinterpret_cast<const char*>(file.bytes().data()) + begin,
                       file.bytes().size() - begin);
  ASSIGN_OR_RETURN(const RunRecord record, read_record(run_record_path(run)));
  for (const RecordStep& s : record.steps) {
    out.steps.push_back(fmt::format("{} {} {} {} {} {} {}", s.step, bits(s.loss), s.trained_tokens,
                                    bits(s.learning_rate), bits(s.gradient_norm),
                                    bits(s.clipped_gradient_norm), s.skipped));
  }
  for (const RecordEval& e : record.evals) out.evals.push_back(fmt::format("{} {}", e.step, bits(e.loss)));
  return out;
}

}  // namespace tenon
