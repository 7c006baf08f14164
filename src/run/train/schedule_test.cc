#include "run/train/schedule.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// Values of transformers' schedules (warm-up 2 of 6 steps, peak 1) at lr_scheduler steps 0 .. 5.
TEST(Schedule, MatchesTransformers) {
  const double linear[] = {0, 0.5, 1, 0.75, 0.5, 0.25};
  const double cosine[] = {0, 0.5, 1, 0.8535533905932737, 0.5, 0.14644660940672627};
  const double constant[] = {0, 0.5, 1, 1, 1, 1};
  for (int64_t step = 1; step <= 6; ++step) {
    EXPECT_DOUBLE_EQ(learning_rate(LrSchedule::linear, 1, step, 6, 2), linear[step - 1]);
    EXPECT_NEAR(learning_rate(LrSchedule::cosine, 1, step, 6, 2), cosine[step - 1], 1e-15);
    EXPECT_DOUBLE_EQ(learning_rate(LrSchedule::constant, 1, step, 6, 2), constant[step - 1]);
  }
  EXPECT_DOUBLE_EQ(learning_rate(LrSchedule::linear, 2, 1, 10, 0), 2);
}

}  // namespace
}  // namespace tenon
