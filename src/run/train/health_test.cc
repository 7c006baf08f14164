#include "run/train/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/checkpoint_interval.h"

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

LossHistory losses(std::initializer_list<double> around, int count) {
  LossHistory history;
  for (int i = 0; i < count; ++i) history.add(std::data(around)[static_cast<size_t>(i) % around.size()]);
  return history;
}

// Median 2, median distance 0.1: one deviation is 0.14826, ten are 1.4826.
TEST(Health, ASpikeIsTenRobustDeviationsAboveTheMedian) {
  LossHistory history = losses({1.9, 2.0, 2.1}, 30);
  EXPECT_FALSE(loss_spike(history, 2.0 + 1.48).has_value());
  const auto score = loss_spike(history, 2.0 + 1.49);
  ASSERT_TRUE(score.has_value());
  EXPECT_NEAR(*score, 1.49 / 0.14826, 1e-9);
}

TEST(Health, NoSpikeIsToldFromFewLossesOrBelowTheStart) {
  EXPECT_FALSE(loss_spike(losses({1.9, 2.0, 2.1}, 19), 50).has_value());
  EXPECT_TRUE(loss_spike(losses({1.9, 2.0, 2.1}, 20), 50).has_value());
  LossHistory fallen = losses({10.0}, 25);
  for (int i = 0; i < 50; ++i) fallen.add(0.1);
  EXPECT_FALSE(loss_spike(fallen, 9.9).has_value());  // a hard row, not a run that breaks
  EXPECT_TRUE(loss_spike(fallen, 10.1).has_value());
}

TEST(Health, SteadyLossesRaiseNoSpikeOfRounding) {
  EXPECT_FALSE(loss_spike(losses({2.0}, 40), 2.9).has_value());  // deviation zero: the floor of 5 % counts
  EXPECT_TRUE(loss_spike(losses({2.0}, 40), 3.1).has_value());
}

TEST(Health, ALossThatStaysIsToldAtStepsThatDouble) {
  LossHistory flat;
  for (int i = 0; i < 100; ++i) flat.add(3.0);
  EXPECT_FALSE(loss_not_falling(flat, 99).has_value());
  ASSERT_TRUE(loss_not_falling(flat, 100).has_value());
  EXPECT_THAT(loss_not_falling(flat, 100)->message, HasSubstr("raise --lr"));
  EXPECT_FALSE(loss_not_falling(flat, 150).has_value());
  EXPECT_TRUE(loss_not_falling(flat, 200).has_value());
  LossHistory falling;
  for (int i = 0; i < 100; ++i) falling.add(3.0 - 0.01 * i);
  EXPECT_FALSE(loss_not_falling(falling, 100).has_value());
}

TEST(Health, ImplausibleSettingsAreNamed) {
  TrainRecipe recipe;
  AdapterModule module;
  module.module = "q_proj";
  module.rank = 16;
  module.scale = 2;
  EXPECT_THAT(implausible_settings(recipe, {&module, 1}), IsEmpty());
  recipe.lr = 0.5;
  EXPECT_EQ(implausible_settings(recipe, {&module, 1}).at(0).kind, "learning_rate");
  recipe.lr = 1e-9;
  EXPECT_EQ(implausible_settings(recipe, {&module, 1}).at(0).kind, "learning_rate");
  recipe.lr = 2e-4;
  module.scale = 64;
  EXPECT_EQ(implausible_settings(recipe, {&module, 1}).at(0).kind, "scale");
  module.scale = 0.01;
  EXPECT_EQ(implausible_settings(recipe, {&module, 1}).at(0).kind, "scale");
}

std::vector<LayerNorms> layers(double first_gradient, double first_change = 1) {
  return {{"a", first_gradient, first_change}, {"b", 1, 1}, {"c", 1, 1}, {"d", 1, 1}};
}

TEST(Health, AGradientThatGrowsFarBeyondItsNeighboursIsToldOnce) {
  LayerHealth health;
  for (int i = 0; i < 5; ++i) EXPECT_THAT(health.observe(layers(1)), IsEmpty());
  std::vector<HealthFinding> found;
  for (int i = 0; i < 6; ++i) {
    for (auto& finding : health.observe(layers(100))) found.push_back(finding);
  }
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "gradient_drift");
  EXPECT_THAT(found[0].message, HasSubstr("of a has grown 100 times"));
}

TEST(Health, GradientsThatGrowTogetherAreNoDrift) {
  LayerHealth health;
  for (int i = 0; i < 5; ++i) EXPECT_THAT(health.observe(layers(1)), IsEmpty());
  for (int i = 0; i < 6; ++i)
    EXPECT_THAT(
        health.observe(std::vector<LayerNorms>{{"a", 100, 1}, {"b", 90, 1}, {"c", 110, 1}, {"d", 95, 1}}),
        IsEmpty());
}

TEST(Health, ALayerWithoutGradientIsToldAfterFiveLooks) {
  LayerHealth health;
  for (int i = 0; i < 4; ++i) EXPECT_THAT(health.observe(layers(0)), IsEmpty());
  const auto found = health.observe(layers(0));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "dead_layers");
  EXPECT_THAT(found[0].message, HasSubstr("1 of 4 layers (a)"));
}

TEST(Health, AnAdapterFarLargerThanTheOthersIsTold) {
  LayerHealth health;
  EXPECT_THAT(health.observe(layers(1, 50)), IsEmpty());
  const auto found = health.observe(layers(1, 150));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "large_layers");
}

TEST(CheckpointInterval, ReadsStepsAndMinutes) {
  EXPECT_EQ(parse_checkpoint_interval("500")->steps, 500);
  EXPECT_EQ(parse_checkpoint_interval("0")->steps, 0);
  EXPECT_EQ(parse_checkpoint_interval("0.5min")->seconds, 30);
  EXPECT_EQ(parse_checkpoint_interval("10min")->steps, 0);
  for (const char* wrong : {"", "min", "-1", "-1min", "0min", "1h", "nanmin", "infmin", "1 min", "5steps"}) {
    const auto interval = parse_checkpoint_interval(wrong);
    ASSERT_FALSE(interval.ok()) << wrong;
    EXPECT_EQ(interval.error().subject, "--checkpoint-every") << wrong;
  }
}

}  // namespace
}  // namespace tenon
