// Training as a whole on a tiny model: what must not change the result does not, to the bit or to rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "run/generator.h"
#include "run/merge.h"
#include "run/probe.h"
#include "run/prompt.h"
#include "run/train/trainer.h"
#include "tests/scratch_folder.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

class Train : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::path(scratch_folder()) / ("train_" + std::string(info()->name()));
    fs::remove_all(folder);
    fs::create_directories(folder);
    const std::string command = TENON_SOURCE_DIR "/tests/make_tiny_model " + model();
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  void TearDown() override { fs::remove_all(folder); }

  static const testing::TestInfo* info() { return testing::UnitTest::GetInstance()->current_test_info(); }
  std::string model() const { return (folder / "model").string(); }

  // Rows whose texts are all as long as each other, so that any split into micro-steps holds the same rows.
  std::string write_rows(int count) {
    const std::string path = (folder / "rows.jsonl").string();
    std::ofstream out(path);
    for (int i = 0; i < count; ++i) {
      const char letter = static_cast<char>('a' + i);
      out << R"({"messages": [{"role": "user", "content": "say )" << letter
          << R"("}, {"role": "assistant", "content": "it is )" << letter << letter << R"("}]})" << '\n';
    }
    return path;
  }

  TrainRecipe recipe(const std::string& data) const {
    TrainRecipe r;
    r.model = model();
    r.data = {data};
    r.steps = 4;
    r.lr = 1e-2;
    r.rank = 4;
    r.alpha = 8;
    r.tokens_per_step = 256;
    r.compute = "f32";
    r.threads = 2;
    r.seed = 7;
    return r;
  }

  struct Run {
    TrainResult result;
    std::vector<StepReport> steps;
    double first_gradient_norm() const { return steps.at(0).gradient_norm; }
  };

  Run train(const TrainRecipe& r) {
    Run run;
    const auto device = test_device(static_cast<int>(r.threads));
    auto job = prepare_training(r, *device);
    EXPECT_TRUE(job.ok()) << job.error().text();
    if (!job.ok()) return run;
    row_tokens = (*job)->report.longest_tokens;
    TrainObserver observer;
    observer.step = [&](const StepReport& report) {
      run.steps.push_back(report);
      return Status();
    };
    auto result = run_training(**job, *device, observer);
    EXPECT_TRUE(result.ok()) << result.error().text();
    if (result.ok()) run.result = std::move(*result);
    return run;
  }

  fs::path folder;
  int64_t row_tokens = 0;
};

void expect_close(const AdapterSet& a, const AdapterSet& b, double limit) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (const auto& [name, values] : a.values) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(double{values[i]} - b.values.at(name)[i], 2);
      norm += std::pow(double{values[i]}, 2);
    }
    EXPECT_LE(std::sqrt(difference), limit * std::sqrt(norm)) << name;
  }
}

TEST_F(Train, LearnsWithinThePlan) {
  TrainRecipe r = recipe(write_rows(6));
  r.steps = 30;
  const Run run = train(r);
  EXPECT_LT(run.result.last_loss, 0.5 * run.result.first_loss);
  EXPECT_EQ(run.result.allocated_bytes, run.result.planned_bytes);
  EXPECT_EQ(run.result.allocations_in_steps, 0);
}

TEST_F(Train, SameSeedSameBits) {
  TrainRecipe r = recipe(write_rows(6));
  r.dropout = 0.1;
  const Run a = train(r), b = train(r);
  EXPECT_EQ(a.result.adapter.values, b.result.adapter.values);
  r.seed = 8;
  EXPECT_NE(train(r).result.adapter.values, a.result.adapter.values);
}

TEST_F(Train, RecomputationChangesNoBit) {
  for (const double dropout : {0.0, 0.2}) {
    TrainRecipe r = recipe(write_rows(6));
    r.dropout = dropout;
    r.recompute = "none";
    const Run kept = train(r);
    r.recompute = "blocks";
    const Run again = train(r);
    EXPECT_EQ(kept.result.adapter.values, again.result.adapter.values) << dropout;
    EXPECT_LT(again.result.planned_bytes, kept.result.planned_bytes);
  }
}

// T01, T02: six rows as one micro-step, as two of three and as six of one.
TEST_F(Train, SplitIntoMicroStepsDoesNotMatter) {
  TrainRecipe r = recipe(write_rows(6));
  train(r);
  const int64_t row = row_tokens;
  r.tokens_per_step = 6 * row;
  const Run one = train(r);
  for (const int64_t parts : {2, 6}) {
    r.tokens_per_step = 6 * row / parts;
    r.accumulate = parts;
    const Run split = train(r);
    for (size_t i = 0; i < one.steps.size(); ++i) {
      EXPECT_EQ(split.steps[i].trained_tokens, one.steps[i].trained_tokens);
      EXPECT_NEAR(split.steps[i].loss, one.steps[i].loss, 2e-5 * one.steps[i].loss) << parts << " step " << i;
      EXPECT_NEAR(split.steps[i].gradient_norm, one.steps[i].gradient_norm,
                  1e-4 * one.steps[i].gradient_norm);
    }
    expect_close(one.result.adapter, split.result.adapter, 1e-3);
  }
}

TEST_F(Train, EvaluationDoesNotDependOnPacking) {
  TrainRecipe r = recipe(write_rows(8));
  r.eval_data = r.data;
  r.steps = 1;
  const double wide = train(r).result.eval->loss;
  for (const int64_t rows : {1, 2, 7}) {
    r.tokens_per_step = 256;  // the training is the same, only the evaluation differs
    const auto device = test_device(2);
    auto job = prepare_training(r, *device);
    ASSERT_TRUE(job.ok());
    StreamSettings settings;
    settings.rows.render.chat_template = &*(*job)->text.chat_template;
    settings.rows.render.tokenizer = settings.rows.tokens.tokenizer = &(*job)->text.tokenizer;
    settings.tokens_per_step = static_cast<int32_t>(rows * row_tokens);
    settings.rows.tokens.max_tokens = settings.tokens_per_step;
    const Run run = train(r);
    std::vector<Program> programs = {
        evaluate_program((*job)->model.spec, run.result.adapter.modules, settings.tokens_per_step, {})};
    auto plan = plan_programs(std::move(programs), (*job)->model, *device, {});
    ASSERT_TRUE(plan.ok());
    auto session = Session::open(std::move(*plan), (*job)->model, &run.result.adapter, *device);
    ASSERT_TRUE(session.ok());
    const auto narrow = evaluate(**session, (*job)->data, settings);
    ASSERT_TRUE(narrow.ok());
    EXPECT_NEAR(narrow->loss, wide, 1e-5 * wide) << rows;
  }
}

TEST_F(Train, AdapterSurvivesDiskAndMergedEqualsLive) {
  TrainRecipe r = recipe(write_rows(6));
  r.steps = 20;
  const Run run = train(r);
  const std::string adapter = (folder / "adapter").string();
  ASSERT_TRUE(write_adapter(adapter, run.result.adapter, r.model).ok());
  const auto device = test_device(2);
  const auto opened = open_model(r.model);
  ASSERT_TRUE(opened.ok());
  const auto read = read_adapter(adapter, forward_program(opened->spec, 1, {}));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->values, run.result.adapter.values);
  MergeRequest request;
  request.model = r.model;
  request.adapter = adapter;
  request.out = (folder / "merged").string();
  request.shard_bytes = 20000;  // several files
  const auto merged = merge_adapter(request, *device);
  ASSERT_TRUE(merged.ok()) << merged.error().text();
  EXPECT_GT(merged->shards, 2);
  EXPECT_GT(merged->base_distance, 0.05);
  EXPECT_LT(merged->merged_distance, 1e-5);
}

// T46: the reply comes from the same numbers as training: after learning one row by heart it is said word for
// word.
TEST_F(Train, WhatWasTrainedIsWhatIsServed) {
  TrainRecipe r = recipe(write_rows(1));
  r.steps = 60;
  r.lr = 3e-2;
  const Run run = train(r);
  EXPECT_LT(run.result.last_loss, 0.4);  // the tiny model's frozen head cannot be surer than about 0.3
  const auto device = test_device(2);
  const auto opened = open_model(r.model);
  const auto text = open_text(*opened, "", "");
  ASSERT_TRUE(text.ok());
  GeneratorSettings settings;
  settings.context_tokens = 128;
  const auto generator = Generator::open(*opened, &run.result.adapter, *device, settings);
  ASSERT_TRUE(generator.ok()) << generator.error().text();
  const auto prompt = user_prompt(*text, "say a");
  ASSERT_TRUE(prompt.ok());
  const std::vector<int32_t> stop = {*text->tokenizer.id_of("<|im_end|>")};
  const auto reply = generate(**generator, *prompt, 40, stop, {}, {});
  ASSERT_TRUE(reply.ok());
  EXPECT_TRUE(reply->ended);
  EXPECT_EQ(text->tokenizer.decode(reply->ids), "it is aa");
}

TEST_F(Train, RefusesDataWithNothingToTrainOn) {
  const std::string path = (folder / "none.jsonl").string();
  std::ofstream(path) << R"({"messages": [{"role": "user", "content": "only a question"}]})" << '\n';
  const auto device = test_device(1);
  const auto job = prepare_training(recipe(path), *device);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().code, ErrorCode::bad_file) << job.error().text();
}

TEST_F(Train, RefusesWhatDoesNotFitAndSaysWhatWould) {
  TrainRecipe r = recipe(write_rows(6));
  r.memory.bytes = 400 << 10;
  const auto device = test_device(1);
  const auto job = prepare_training(r, *device);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().code, ErrorCode::over_budget);
  EXPECT_THAT(job.error().hint, testing::HasSubstr("--tokens-per-step"));
}

}  // namespace
}  // namespace tenon
