// Health checks on whole runs: healthy ones raise no alarm, one that breaks does, and each --on-spike does
// what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_device.h"
#include "io/safetensors.h"
#include "io/write_file.h"
#include "run/train/run_paths.h"
#include "tests/tensor_files.h"
#include "tests/tiny_run.h"

namespace tenon {
namespace {

using testing::ContainsRegex;
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

// A row whose loss is an ordinary number, but one of whose gradients overflows: only its "%" reaches the
// first column of the embedding, where the first layer's A is so large that the gradient of its B is
// infinite.
class GradientsThatAreNotFinite : public HealthOfRuns {
 protected:
  static constexpr int kRows = 12;
  static constexpr const char* kModule = "layers.0.self_attn.q_proj";

  void SetUp() override {
    HealthOfRuns::SetUp();
    std::string text;
    for (int row = 1; row <= kRows; ++row)
      text +=
          std::string(R"({"prompt": "aaaa", "completion": ")") + (row == kRows ? " a%aa" : " aaaa") + "\"}\n";
    folder_.put("rows.jsonl", text);
    empty_first_column();
    write_large_adapter();
  }

  void empty_first_column() const {
    const std::string path = model() + "/model.safetensors";
    std::string bytes = *read_file(path);
    const auto header = parse_safetensors(std::as_bytes(std::span(bytes)));
    for (const TensorEntry& tensor : header->tensors) {
      if (tensor.name != "model.embed_tokens.weight") continue;
      constexpr int64_t kPercent = 11;  // in tests/text/tiny_bytes
      const int64_t row_bytes = tensor.size_bytes / tensor.shape[0];
      for (int64_t token = 0; token < tensor.shape[0]; ++token) {
        if (token != kPercent)
          std::memset(bytes.data() + tensor.offset_bytes + token * row_bytes, 0, sizeof(float));
      }
    }
    ASSERT_TRUE(write_file_atomic(path, bytes).ok());
  }

  void write_large_adapter() {
    const auto device = make_cpu_device(1);
    const auto job = prepare_training(gradient_recipe("warn"), *device);
    ASSERT_TRUE(job.ok()) << job.error().text();
    AdapterSet adapter = (*job)->adapter;
    for (const AdapterModule& module : adapter.modules) {
      if (module.key.find(kModule) == std::string::npos) continue;
      std::vector<float>& a = adapter.values.at(module.a_name());
      std::ranges::fill(a, 0.0f);
      a[0] = 1e37f;
    }
    ASSERT_TRUE(write_adapter(folder_ / "large", adapter, model()).ok());
  }

  TrainRecipe gradient_recipe(std::string_view on_spike) {
    TrainRecipe r = shock_recipe(on_spike);
    r.rank = 1;
    r.alpha = 1e6;
    r.lr = 1e-9;
    r.steps = 2 * kRows;
    return r;
  }

  // A run of that adapter, its outcome in `result`.
  RunRecord run(std::string_view on_spike, Result<TrainResult>& result) {
    TrainRecipe r = gradient_recipe(on_spike);
    r.adapter = folder_ / "large";
    result = begin(r);
    return *read_record(run_record_path(r.out));
  }

  static void expect_finite(const std::string& file) {
    for (const auto& [name, values] : read_tensors(file).floats)
      EXPECT_TRUE(std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) << name;
  }

  void expect_note(const RunRecord& record, const char* action) {
    ASSERT_FALSE(record.notes.empty());
    const RecordNote& note = record.notes.back();
    EXPECT_EQ(note.kind, "not_finite");
    EXPECT_EQ(note.action, action);
    EXPECT_THAT(note.message, HasSubstr("the gradient of "));
    EXPECT_THAT(note.message, ContainsRegex("on rows .*\\b12\\b.*; look at"));
  }
};

TEST_F(GradientsThatAreNotFinite, WarnAndStopEndTheRunBeforeTheStep) {
  for (const char* on_spike : {"warn", "stop"}) {
    SCOPED_TRACE(on_spike);
    Result<TrainResult> result = device_error("");
    const RunRecord record = run(on_spike, result);
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message, HasSubstr("is not finite"));
    EXPECT_THAT(result.error().subject, ContainsRegex(", rows .*\\b12\\b"));
    EXPECT_EQ(record.end->status, "failed");
    expect_note(record, "stop");
    const int64_t last = checkpoint_steps(run_path(on_spike))->back();
    EXPECT_EQ(last, record.notes.back().step - 1);
    expect_finite(checkpoint_path(run_path(on_spike), last));
    const auto on = resume(run_path(on_spike), 0, [](TrainRecipe& changed) { changed.on_spike = "skip"; });
    EXPECT_TRUE(on.ok()) << on.error().text();
    expect_finite(run_adapter_folder(run_path(on_spike)) + "/adapter_model.safetensors");
  }
}

TEST_F(GradientsThatAreNotFinite, SkipLeavesTheStepOut) {
  Result<TrainResult> result = device_error("");
  const RunRecord record = run("skip", result);
  ASSERT_TRUE(result.ok()) << result.error().text();
  expect_note(record, "skip");
  const auto skipped = std::ranges::count_if(record.steps, &RecordStep::skipped);
  EXPECT_GE(skipped, 2);  // once an epoch
  EXPECT_EQ(std::ranges::count(record.notes, "not_finite", &RecordNote::kind), skipped);
  for (const RecordStep& step : record.steps) {
    EXPECT_TRUE(std::isfinite(step.loss));
    EXPECT_EQ(std::isfinite(step.gradient_norm), !step.skipped) << step.step;
  }
  expect_finite(run_adapter_folder(run_path("skip")) + "/adapter_model.safetensors");
}

TEST_F(GradientsThatAreNotFinite, RollbackGoesBackAndOnBehindTheRow) {
  Result<TrainResult> result = device_error("");
  const RunRecord record = run("rollback", result);
  ASSERT_TRUE(result.ok()) << result.error().text();
  EXPECT_EQ(record.steps.size(), 2u * kRows);
  expect_finite(run_adapter_folder(run_path("rollback")) + "/adapter_model.safetensors");
  ASSERT_FALSE(record.resumes.empty());
  EXPECT_EQ(record.resumes[0].reason, "rollback");
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
