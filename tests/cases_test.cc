// Failures of fine-tuning that users of other tools reported, as drills (docs/cases.md). Those that a test
// elsewhere already covers are named in that table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_device.h"
#include "run/evaluate.h"
#include "run/programs.h"
#include "run/train/stream_settings.h"
#include "tests/tiny_run.h"

namespace tenon {
namespace {

using testing::Each;
using testing::HasSubstr;

class Cases : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    write_rows(12);
    device_ = make_cpu_device(1);
  }

  // Losses by token of one batch, of a model with an adapter that changes it.
  std::vector<float> losses(const TrainJob& job, const AdapterSet& adapter, const MicroBatch& batch) {
    std::vector<Program> programs = {
        evaluate_program(job.model.spec, adapter.modules, static_cast<int64_t>(batch.ids.size()), {})};
    auto plan = plan_programs(std::move(programs), job.model, *device_, {});
    EXPECT_TRUE(plan.ok()) << plan.error().text();
    auto session = Session::open(std::move(*plan), job.model, &adapter, *device_);
    EXPECT_TRUE(session.ok()) << session.error().text();
    write_batch(**session, batch);
    EXPECT_TRUE((*session)->run(kEvaluate).ok());
    return (*session)->output_f32(kEvaluate, kLossOutput);
  }

  TokenizedExample example(const TrainJob& job, int64_t row) {
    auto loaded = load_row(job.data, row, stream_settings(job, DataPart::all).rows);
    EXPECT_TRUE(loaded.ok()) << loaded.error().text();
    return loaded->tokens.example;
  }

  std::unique_ptr<Device> device_;
};

// T09: a batch without one trained token, and slots that hold nothing.
TEST_F(Cases, T09_ABatchWithoutATrainedTokenHasLossZero) {
  const auto job = prepare_training(recipe(), *device_);
  ASSERT_TRUE(job.ok()) << job.error().text();
  TokenizedExample masked = example(**job, 0);
  std::fill(masked.labels.begin(), masked.labels.end(), kUntrained);
  MicroBatch batch = empty_batch(48);
  ASSERT_TRUE(append_example(batch, masked, 0));
  EXPECT_THAT(losses(**job, (*job)->adapter, batch), Each(0.0f));
}

// T17: the row that is too long stands last, and is named before anything is trained.
TEST_F(Cases, T17_TheLongestRowIsSeenBeforeTheRunStarts) {
  std::string text = *read_file(folder_ / "rows.jsonl");
  text += R"({"messages": [{"role": "user", "content": "say it"}, {"role": "assistant", "content": ")" +
          std::string(500, 'x') + "\"}]}\n";
  folder_.put("rows.jsonl", text);
  const auto refused = begin(recipe());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().subject, HasSubstr("rows.jsonl:13"));
  EXPECT_FALSE(is_folder(run_path()));
}

// T19: rank, evaluation and checkpoints change what is planned, and then nothing more is allocated.
TEST_F(Cases, T19_MemoryOfAStepDoesNotGrow) {
  for (const int64_t rank : {1, 16}) {
    TrainRecipe r = recipe("rank" + std::to_string(rank));
    r.rank = rank;
    r.steps = 12;
    const auto result = begin(r);
    ASSERT_TRUE(result.ok()) << result.error().text();
    EXPECT_EQ(result->allocated_bytes, result->planned_bytes);
    EXPECT_EQ(result->allocations_in_steps, 0);
  }
}

// T24: what a row loses inside a pack is what it loses alone.
TEST_F(Cases, T24_ARowInAPackIsTheRowAlone) {
  TrainRecipe r = recipe();
  const auto trained = begin(r);
  ASSERT_TRUE(trained.ok()) << trained.error().text();
  r.out = run_path("other");
  const auto job = prepare_training(r, *device_);
  ASSERT_TRUE(job.ok());
  MicroBatch pack = empty_batch(192);
  for (const int64_t row : {3, 0, 4}) ASSERT_TRUE(append_example(pack, example(**job, row), row));
  const std::vector<float> together = losses(**job, trained->adapter, pack);
  for (const PackedRow& row : pack.rows) {
    MicroBatch alone = empty_batch(row.tokens);
    ASSERT_TRUE(append_example(alone, example(**job, row.row), row.row));
    const std::vector<float> single = losses(**job, trained->adapter, alone);
    for (int32_t t = 0; t < row.tokens; ++t) {
      const float packed = together[static_cast<size_t>(row.begin + t)];
      EXPECT_NEAR(packed, single[static_cast<size_t>(t)], 2e-5 * std::abs(packed))
          << row.row << " token " << t;
    }
  }
}

// T44: one renamed key of an adapter.
TEST_F(Cases, T44_ARenamedKeyIsListedAsMissingAndUnexpected) {
  TrainRecipe r = recipe();
  ASSERT_TRUE(begin(r).ok());
  const std::string path = r.out + "/adapter/adapter_model.safetensors";
  std::string bytes = *read_file(path);
  bytes.replace(bytes.find("layers.1.mlp.up_proj.lora_A"), 27, "layers.9.mlp.up_proj.lora_A");
  ASSERT_TRUE(write_file_atomic(path, bytes).ok());
  r.adapter = r.out + "/adapter";
  r.out = run_path("next");
  const auto refused = begin(r);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::bad_file);
  EXPECT_THAT(refused.error().message,
              HasSubstr("missing: base_model.model.model.layers.1.mlp.up_proj.lora_A"));
  EXPECT_THAT(refused.error().message,
              HasSubstr("unexpected: base_model.model.model.layers.9.mlp.up_proj.lora_A"));
}

// T47: the head and its loss are one op without a place for an adapter; asking for one is refused, never
// trained without gradient.
TEST_F(Cases, T47_AnAdapterOnTheHeadIsRefused) {
  TrainRecipe r = recipe();
  r.targets = {"lm_head"};
  const auto refused = begin(r);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("lm_head"));
  EXPECT_THAT(refused.error().text(), HasSubstr("q_proj"));  // what there is
}

}  // namespace
}  // namespace tenon
