// Every family's training and decoding can be predicted: each kind of step finds its inputs when it runs
// without those that are left out.
#include "run/bench/predict.h"

#include <gtest/gtest.h>

#include "run/generator.h"
#include "run/session.h"
#include "tests/golden_reference.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

std::vector<std::string> families() {
  std::map<std::string, std::string> paths = full_goldens();
  paths.merge(packed_goldens());
  std::vector<std::string> out;
  for (const auto& [name, demands] : supported_families()) {
    if (const auto at = paths.find(name); at != paths.end()) out.push_back(at->second);
  }
  return out;
}

void expect_times(std::vector<Program> programs, const Model& model, Device& device) {
  const auto plan = plan_programs(std::move(programs), model, device, {});
  ASSERT_TRUE(plan.ok()) << plan.error().text();
  const auto times = predict_times(*plan, &model, device, {32, {}});
  ASSERT_TRUE(times.ok()) << times.error().text();
  ASSERT_EQ(times->size(), plan->programs.size());
  for (size_t i = 0; i < times->size(); ++i) {
    EXPECT_EQ((*times)[i].program, plan->programs[i].program.name);
    EXPECT_GT((*times)[i].seconds, 0);
    EXPECT_LT((*times)[i].seconds, 60);
  }
}

class Prediction : public testing::TestWithParam<std::string> {};

TEST_P(Prediction, OfTrainingAndDecoding) {
  const std::unique_ptr<Device> device = test_device(1);
  const auto model = open_model(open_golden(GetParam()).folder);
  ASSERT_TRUE(model.ok()) << model.error().text();
  const auto modules =
      choose_modules(forward_program(model->spec, 1, {}), {.rank = 2, .targets = {"all-linear"}});
  ASSERT_TRUE(modules.ok()) << modules.error().text();
  TrainSettings settings;
  settings.tokens = 48;
  TrainPrograms training = train_programs(model->spec, *modules, settings);
  std::vector<Program> programs;
  programs.push_back(std::move(training.train_step));
  programs.push_back(std::move(training.optimiser_step));
  expect_times(std::move(programs), *model, *device);
  GeneratorSettings generation;
  generation.context_tokens = 32;
  expect_times(generator_programs(model->spec, *modules, generation), *model, *device);
}

INSTANTIATE_TEST_SUITE_P(Families, Prediction, testing::ValuesIn(families()),
                         [](const auto& info) { return golden_name(info.param); });

}  // namespace
}  // namespace tenon
