// Health checks on whole runs: healthy ones raise no alarm, one that breaks does, and each --on-spike does
// what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "run/train/run_paths.h"
#include "tests/tiny_run.h"

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class HealthOfRuns : public TinyRun {
 protected:
  // Rows that a model learns quickly, and one at the end of an epoch that it has never seen the like of.
  void write_rows_with_a_shock() {
    std::string text;
    for (int i = 0; i < 12; ++i)
      text += R"({"prompt": "aaaa", "completion": " aaaa"})"
              "\n";
    text += R"({"prompt": "aaaa", "completion": " zq9#Zx!%~^Q|"})"
            "\n";
    folder_.put("rows.jsonl", text);
  }

  TrainRecipe shock_recipe(std::string_view on_spike) {
    TrainRecipe r = recipe(std::string(on_spike));
    r.eval_fraction = 0;
    r.eval_every = 0;
    r.dropout = 0;
    r.accumulate = 1;
    r.tokens_per_step = 24;  // one row a step
    r.schedule = "constant";
    r.warmup_steps = 0;
    r.lr = 1e-2;
    r.steps = 60;
    r.checkpoint_every = "5";
    r.on_spike = on_spike;
    return r;
  }
};

// The alarm must not be one that people learn to overlook.
TEST_F(HealthOfRuns, TwentyHealthyRunsRaiseNoAlarm) {
  write_rows(40);
  for (int64_t seed = 0; seed < 20; ++seed) {
    TrainRecipe r = recipe("healthy");
    r.overwrite = true;
    r.seed = seed;
    r.steps = seed < 4 ? 110 : 60;
    r.eval_fraction = 0;
    r.eval_every = 0;
    r.accumulate = 1;
    r.checkpoint_every = "0";
    const auto result = begin(r);
    ASSERT_TRUE(result.ok()) << result.error().text();
    EXPECT_LT(result->last_loss, result->first_loss) << seed;
    const auto record = read_record(run_record_path(r.out));
    EXPECT_THAT(record->notes, IsEmpty()) << seed << ": " << record->notes.front().message;
  }
}

TEST_F(HealthOfRuns, ASpikeIsSaidWithItsRows) {
  write_rows_with_a_shock();
  const TrainRecipe r = shock_recipe("warn");
  ASSERT_TRUE(begin(r).ok());
  const auto record = read_record(run_record_path(r.out));
  ASSERT_FALSE(record->notes.empty());
  EXPECT_EQ(record->notes[0].kind, "loss_spike");
  EXPECT_EQ(record->notes[0].action, "warn");
  EXPECT_THAT(record->notes[0].message, HasSubstr("on rows 13;"));
  EXPECT_EQ(record->steps.size(), 60u);
}

TEST_F(HealthOfRuns, SkipThrowsTheStepAwayAndGoesOn) {
  write_rows_with_a_shock();
  const TrainRecipe r = shock_recipe("skip");
  ASSERT_TRUE(begin(r).ok());
  const auto record = read_record(run_record_path(r.out));
  const auto skipped = std::ranges::find_if(record->steps, &RecordStep::skipped);
  ASSERT_NE(skipped, record->steps.end());
  EXPECT_EQ(skipped->step, record->notes.at(0).step);
  EXPECT_EQ(record->steps.size(), 60u);
}

TEST_F(HealthOfRuns, StopSavesTheStateBeforeTheStep) {
  write_rows_with_a_shock();
  const TrainRecipe r = shock_recipe("stop");
  const auto result = begin(r);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::device);
  EXPECT_THAT(result.error().text(), HasSubstr("the loss jumped to"));
  const auto record = read_record(run_record_path(r.out));
  EXPECT_EQ(record->end->status, "failed");
  EXPECT_EQ(checkpoint_steps(r.out)->back(), record->notes.at(0).step - 1);
  const auto on = resume(r.out, 0, [](TrainRecipe& changed) { changed.on_spike = "skip"; });
  ASSERT_TRUE(on.ok()) << on.error().text();
  EXPECT_EQ(on->steps, 60);
}

// A rate so high that the second step overflows: the adapter is lost, so no choice can save the run.
TEST_F(HealthOfRuns, ALossThatIsNotFiniteEndsTheRunWithItsRows) {
  write_rows(12);
  for (const char* on_spike : {"warn", "stop", "skip", "rollback"}) {
    TrainRecipe r = shock_recipe(on_spike);
    r.tokens_per_step = 48;
    r.lr = 1e30;
    const auto result = begin(r);
    ASSERT_FALSE(result.ok()) << on_spike;
    EXPECT_EQ(result.error().code, ErrorCode::device) << on_spike;
    EXPECT_THAT(result.error().subject, HasSubstr(", rows ")) << on_spike;
    EXPECT_THAT(result.error().hint, HasSubstr("Lower --lr")) << on_spike;
    EXPECT_THAT(result.error().hint, HasSubstr("tenon train --resume")) << on_spike;
    const auto record = read_record(run_record_path(r.out));
    EXPECT_EQ(record->end->status, "failed") << on_spike;
    EXPECT_EQ(record->notes.back().kind, "not_finite") << on_spike;
  }
}

// A run that went back, and one that was interrupted on its way back, are the same run.
TEST_F(HealthOfRuns, RollbackGoesToTheCheckpointAndOnBehindTheRows) {
  write_rows_with_a_shock();
  TrainRecipe r = shock_recipe("rollback");
  ASSERT_TRUE(begin(r).ok());
  const auto record = read_record(run_record_path(r.out));
  ASSERT_FALSE(record->resumes.empty());
  EXPECT_EQ(record->resumes[0].reason, "rollback");
  EXPECT_EQ(record->resumes[0].step % 5, 0);
  ASSERT_FALSE(record->notes.empty());
  EXPECT_EQ(record->notes[0].action, "rollback");
  EXPECT_EQ(record->steps.size(), 60u);
  const auto whole = bits_of(r.out);
  r.out = run_path("interrupted");
  ASSERT_TRUE(begin(r, record->resumes[0].step + 2)->stopped);
  ASSERT_TRUE(resume(r.out).ok());
  const auto interrupted = bits_of(r.out);
  EXPECT_EQ(interrupted->adapter, whole->adapter);
  EXPECT_EQ(interrupted->steps, whole->steps);
}

}  // namespace
}  // namespace tenon
