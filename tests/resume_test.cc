// A run that was interrupted in any way goes on as if nothing had happened, to the bit; a run that is not the
// same any more is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "io/write_points.h"
#include "run/train/run_paths.h"
#include "tests/tiny_run.h"

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using write_points::Fault;
using write_points::FaultKind;
using write_points::ScopedFault;

class Resume : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    write_rows(20);
  }

  RunBits uninterrupted(const TrainRecipe& r) {
    const auto result = begin(r);
    EXPECT_TRUE(result.ok()) << result.error().text();
    auto bits = bits_of(r.out);
    EXPECT_TRUE(bits.ok()) << bits.error().text();
    return bits.ok() ? *bits : RunBits();
  }

  void expect_same(const RunBits& expected, const std::string& run, const std::string& what) {
    const auto bits = bits_of(run);
    ASSERT_TRUE(bits.ok()) << what << ": " << bits.error().text();
    EXPECT_EQ(bits->adapter, expected.adapter) << what;
    EXPECT_EQ(bits->optimiser, expected.optimiser) << what;
    EXPECT_EQ(bits->progress, expected.progress) << what;
    EXPECT_EQ(bits->steps, expected.steps) << what;
    EXPECT_EQ(bits->evals, expected.evals) << what;
  }

  // After an interruption: resumes, or begins again where the folder holds no run yet.
  Result<TrainResult> go_on(const TrainRecipe& r) {
    auto result = resume(r.out);
    return !result.ok() && result.error().code == ErrorCode::not_found ? begin(r) : result;
  }
};

// T48, mid-epoch: stopped after every step once.
TEST_F(Resume, GoesOnToTheBitAfterAStop) {
  const RunBits expected = uninterrupted(recipe("whole"));
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r, 1)->stopped);
  for (int64_t step = 2; step <= 8; ++step) ASSERT_TRUE(resume(r.out, step)->stopped);
  const auto last = resume(r.out);
  ASSERT_TRUE(last.ok()) << last.error().text();
  EXPECT_FALSE(last->stopped);
  expect_same(expected, r.out, "stopped");
  const auto record = read_record(run_record_path(r.out));
  EXPECT_EQ(record->resumes.size(), 8u);
  EXPECT_EQ(record->end->status, "finished");
}

// The process dies at its n-th write, for every n, and then again while it resumes.
TEST_F(Resume, SurvivesAKillAtEveryWrite) {
  TrainRecipe r = recipe("whole");
  r.steps = 4;
  r.checkpoint_every = "2";
  r.keep = 1;
  r.keep_best = true;
  r.tensorboard = true;
  const RunBits expected = uninterrupted(r);
  r.out = run_path();
  bool killed = true;
  int64_t point = 0;
  for (; killed; ++point) {
    std::filesystem::remove_all(r.out);
    const pid_t child = ::fork();
    if (child == 0) {
      const ScopedFault fault(Fault{FaultKind::kill, point});
      ::_exit(begin(r).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed = WIFSIGNALED(status);
    ASSERT_TRUE(killed ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0) << point;
    const pid_t second = ::fork();
    if (second == 0) {
      const ScopedFault fault(Fault{FaultKind::kill, point % 7});
      ::_exit(go_on(r).ok() ? 0 : 1);
    }
    ASSERT_EQ(::waitpid(second, &status, 0), second);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << point;
    const auto result = go_on(r);
    ASSERT_TRUE(result.ok()) << point << ": " << result.error().text();
    expect_same(expected, r.out, fmt::format("killed at {}", point));
    if (HasFailure()) return;
  }
  EXPECT_GT(point, 40);
}

// The disk fails at the n-th write: the run ends with a message that says how to go on, and then goes on.
TEST_F(Resume, SurvivesAFailingDiskAtEveryWrite) {
  TrainRecipe r = recipe("whole");
  r.steps = 3;
  r.checkpoint_every = "1";
  r.keep = 1;
  r.tensorboard = true;
  const RunBits expected = uninterrupted(r);
  r.out = run_path();
  constexpr FaultKind kKinds[] = {FaultKind::no_space, FaultKind::io_error, FaultKind::read_only};
  bool failed = true;
  for (int64_t point = 0; failed; ++point) {
    std::filesystem::remove_all(r.out);
    {
      const ScopedFault fault(Fault{kKinds[point % 3], point});
      const auto result = begin(r);
      failed = fault.points() > point;
      if (!result.ok()) {
        EXPECT_EQ(result.error().code, ErrorCode::io) << point;
        EXPECT_FALSE(result.error().hint.empty()) << point << ": " << result.error().text();
        const auto record = read_record(run_record_path(r.out));
        if (record.ok() && !record->steps.empty()) {
          EXPECT_THAT(result.error().hint, HasSubstr("tenon train --resume")) << point;
        }
      }
    }
    const auto result = go_on(r);
    ASSERT_TRUE(result.ok()) << point << ": " << result.error().text();
    expect_same(expected, r.out, fmt::format("failed at {}", point));
    if (HasFailure()) return;
  }
}

TEST_F(Resume, AShortWriteIsCompleted) {
  TrainRecipe r = recipe("whole");
  r.steps = 2;
  const RunBits expected = uninterrupted(r);
  for (int64_t point = 0; point < 12; point += 3) {
    r.out = run_path(fmt::format("short{}", point));
    const ScopedFault fault(Fault{FaultKind::short_write, point});
    ASSERT_TRUE(begin(r).ok());
    expect_same(expected, r.out, fmt::format("short at {}", point));
  }
}

TEST_F(Resume, RefusesAChangedSettingAndNamesIt) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r, 3).ok());
  const auto result = resume(r.out, 0, [](TrainRecipe& changed) { changed.seed = 8; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::bad_argument);
  EXPECT_THAT(result.error().text(), HasSubstr("--seed was '7' and is '8'"));
}

TEST_F(Resume, RefusesChangedDataAndModelAndNamesThem) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r, 3).ok());
  write_rows(21);
  EXPECT_THAT(resume(r.out).error().text(), HasSubstr("data has changed"));
  write_rows(20);
  const std::string weights = model() + "/model.safetensors";
  std::string bytes = *read_file(weights);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(write_file_atomic(weights, bytes).ok());
  EXPECT_THAT(resume(r.out).error().text(), HasSubstr("model model.safetensors has changed"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(write_file_atomic(weights, bytes).ok());
  EXPECT_TRUE(resume(r.out).ok());
}

TEST_F(Resume, RefusesAnEditedRecipeFile) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r, 3).ok());
  std::string text = *read_file(run_recipe_path(r.out));
  text.replace(text.find("rank: 4"), 7, "rank: 8");
  ASSERT_TRUE(write_file_atomic(run_recipe_path(r.out), text).ok());
  EXPECT_THAT(resume(r.out).error().text(), HasSubstr("rank was edited: the run has '4', the file says '8'"));
}

TEST_F(Resume, MoreStepsAndAnotherScheduleAreRecorded) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r).ok());
  const auto more = resume(r.out, 0, [](TrainRecipe& changed) {
    changed.steps = 12;
    changed.schedule = "constant";
  });
  ASSERT_TRUE(more.ok()) << more.error().text();
  const auto record = read_record(run_record_path(r.out));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->steps.size(), 12u);
  EXPECT_THAT(record->recipe(), HasSubstr("steps: 12"));
  EXPECT_THAT(record->recipe(), HasSubstr("schedule: constant"));
  EXPECT_EQ(*read_file(run_recipe_path(r.out)), record->recipe());
  EXPECT_DOUBLE_EQ(record->steps.back().learning_rate, r.lr);
}

// T48: 200 steps equal 100, a resumption that asks for 100 more, and 100.
TEST_F(Resume, AConstantRateRunsOnAsIfItHadBeenLonger) {
  TrainRecipe r = recipe("whole");
  r.schedule = "constant";
  r.steps = 200;
  r.eval_every = 50;
  r.accumulate = 1;
  const RunBits expected = uninterrupted(r);
  r.out = run_path();
  r.steps = 100;
  ASSERT_TRUE(begin(r).ok());
  ASSERT_TRUE(resume(r.out, 0, [](TrainRecipe& changed) { changed.steps = 200; }).ok());
  expect_same(expected, r.out, "100 + 100");
}

TEST_F(Resume, FewerStepsThanTakenAreRefused) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r, 5).ok());
  const auto fewer = resume(r.out, 0, [](TrainRecipe& changed) { changed.steps = 4; });
  EXPECT_THAT(fewer.error().text(), HasSubstr("4 steps were asked for, but 5 are already taken"));
}

TEST_F(Resume, ASecondProcessIsRefused) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r, 3).ok());
  const auto lock = FolderLock::acquire(r.out);
  ASSERT_TRUE(lock.ok());
  EXPECT_THAT(resume(r.out).error().text(), HasSubstr("in use by process"));
}

TEST_F(Resume, KeepsTheNewestCheckpointsAndTheBest) {
  TrainRecipe r = recipe();
  r.steps = 40;
  r.checkpoint_every = "1";
  r.eval_every = 1;
  r.early_stop = 3;
  r.keep_best = true;
  r.lr = 1;  // so high that the loss soon rises
  r.warmup_steps = 0;
  const auto result = begin(r);
  ASSERT_TRUE(result.ok()) << result.error().text();
  const auto record = read_record(run_record_path(r.out));
  const auto best = std::ranges::min_element(record->evals, {}, &RecordEval::loss);
  EXPECT_EQ(result->best_step, best->step);
  EXPECT_EQ(result->steps, best->step + 3);
  EXPECT_THAT(*checkpoint_steps(r.out), ElementsAre(best->step, best->step + 2, best->step + 3));
  EXPECT_TRUE(is_file(run_best_folder(r.out) + "/adapter_model.safetensors"));
  EXPECT_NE(*read_file(run_best_folder(r.out) + "/adapter_model.safetensors"),
            *read_file(run_adapter_folder(r.out) + "/adapter_model.safetensors"));
}

TEST_F(Resume, EndsEarlyWithoutImprovementAndStaysEnded) {
  TrainRecipe r = recipe();
  r.steps = 40;
  r.eval_every = 1;
  r.early_stop = 2;
  r.lr = 1;
  r.warmup_steps = 0;
  const auto result = begin(r);
  ASSERT_TRUE(result.ok()) << result.error().text();
  EXPECT_TRUE(result->ended_early);
  EXPECT_EQ(result->steps, result->best_step + 2);
  EXPECT_EQ(read_record(run_record_path(r.out))->end->status, "early_stop");
  EXPECT_TRUE(find_resume_point(r.out)->ended());
  const auto patient = resume(r.out, 0, [](TrainRecipe& changed) { changed.early_stop = 4; });
  ASSERT_TRUE(patient.ok()) << patient.error().text();
  EXPECT_GT(patient->steps, result->steps);
}

TEST_F(Resume, ADamagedCheckpointIsRefused) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r, 4).ok());
  const std::string path = checkpoint_path(r.out, 4);
  std::string bytes = *read_file(path);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 0x10);
  ASSERT_TRUE(write_file_atomic(path, bytes).ok());
  const auto damaged = resume(r.out);
  ASSERT_FALSE(damaged.ok());
  EXPECT_THAT(damaged.error().text(), HasSubstr("the checkpoint is damaged"));
  ASSERT_TRUE(remove_file(path).ok());
  EXPECT_TRUE(resume(r.out).ok());  // from step 3
}

TEST_F(Resume, AShortenedRecordIsRefused) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r, 4).ok());
  const std::string text = *read_file(run_record_path(r.out));
  ASSERT_TRUE(write_file_atomic(run_record_path(r.out), text.substr(0, text.find('\n') + 1)).ok());
  EXPECT_THAT(resume(r.out).error().text(), HasSubstr("it is shorter than when"));
}

}  // namespace
}  // namespace tenon
