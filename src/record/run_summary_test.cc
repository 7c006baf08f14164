#include "record/run_summary.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

RecordStep step(int64_t number, double loss, double tokens_per_second, double seconds) {
  RecordStep s;
  s.step = number;
  s.loss = loss;
  s.trained_tokens = 10;
  s.tokens_per_second = tokens_per_second;
  s.seconds = {{"data", seconds / 4}, {"forward_backward", 3 * seconds / 4}};
  return s;
}

TEST(RunSummary, CountsByHand) {
  RunRecord record;
  record.header.recipe = "lr: 0.5\nlr-x: 2\n";
  record.steps = {step(1, 3, 100, 1), step(2, 1, 300, 3)};
  record.evals = {{.step = 1, .loss = 2}, {.step = 2, .loss = 4}};
  const RunSummary summary = summarise(record, false);
  EXPECT_EQ(summary.state, "killed");
  EXPECT_EQ(summary.steps, 2);
  EXPECT_EQ(summary.trained_tokens, 20);
  EXPECT_EQ(summary.first_loss, 3);
  EXPECT_EQ(summary.last_loss, 1);
  EXPECT_EQ(summary.seconds, 4);
  EXPECT_EQ(summary.tokens_per_second, 250);  // (100 * 1 + 300 * 3) / 4
  EXPECT_EQ(summary.last_eval_loss, 4);
  EXPECT_EQ(summary.best_eval_loss, 2);
  EXPECT_EQ(summary.best_eval_step, 1);
  EXPECT_EQ(summarise(record, true).state, "running");
  record.end = RecordEnd{.status = "failed"};
  EXPECT_EQ(summarise(record, false).state, "failed");
  EXPECT_EQ(recipe_setting(record, "lr"), "0.5");
  EXPECT_EQ(recipe_setting(record, "rank"), "");
}

}  // namespace
}  // namespace tenon
