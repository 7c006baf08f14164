// Golden families: what transformers and peft computed in float64 against what Tenon computes through its
// whole path (checkpoint, spec, programs, plan, kernels). Tolerances as in the goldens' README: 2e-5, or four
// times the reference's own float32 error where that is more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.h"
#include "ops/interpret.h"
#include "run/adapter_set.h"
#include "run/model.h"
#include "run/probe.h"
#include "tests/golden_reference.h"
#include "tests/scratch_folder.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

// Where to find the families that are supported, or the others. With both forms of a family, both are given,
// the folder first.
std::vector<std::string> golden_paths(bool are_supported) {
  const std::map<std::string, Demands> families = supported_families();
  std::vector<std::string> out;
  for (const auto& forms : {full_goldens(), packed_goldens()}) {
    for (const auto& [name, path] : forms) {
      if (families.contains(name) == are_supported) out.push_back(path);
    }
  }
  return out;
}

// AdamW magnifies rounding by as much as a gradient is near zero, which the tolerances of
// golden_supported.txt follow for the folders' weights alone.
constexpr double kPackedCurve = 0.2;

bool is_packed(const std::string& path) {
  return path.ends_with(".safetensors");
}

struct RoundedMaths {
  std::map<std::string, std::vector<float>> values;  // "logits" and "lora_grad.<...>"
  bool chooses = false;                              // experts or keys, by top-k
};

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    want = open_golden(GetParam());
    ASSERT_FALSE(want.facts.is_null());
    facts = want.facts;
    demands = supported_families()[golden_name(GetParam())];
    device = test_device(1);
  }

  // Runs a probe and reads what it wrote.
  TensorFile run(ProbeRequest request) {
    request.model = want.folder;
    request.tokens = want.tokens;
    request.out = scratch_folder() + "/probe_" + golden_name(GetParam()) + ".safetensors";
    const auto summary = probe(request, *device);
    // A GPU that lacks a kernel for an op refuses the plan.
    if (!summary.ok() && summary.error().code == ErrorCode::unsupported &&
        device->facts().kind == DeviceKind::cuda) {
      refused = summary.error().text();
      return {};
    }
    EXPECT_TRUE(summary.ok()) << summary.error().text();
    return summary.ok() ? read_tensors(request.out) : TensorFile{};
  }

  double tolerance(const char* kind) const {
    return want.slack() * std::max(2e-5, 4 * facts["float32_error"][kind].get<double>());
  }

  // Norm of all tensors under `prefix`.
  double norm_under(const std::string& prefix) const {
    double all = 0;
    for (const auto& [name, values] : want.values.floats) {
      if (name.starts_with(prefix)) all += std::pow(want.norm_of(name), 2);
    }
    return std::sqrt(all);
  }

  // Every reference gradient under `prefix` is there and close; nothing else is.
  void expect_gradients(const TensorFile& got, const std::string& prefix, double limit) {
    const double floor = 1e-4 * norm_under(prefix);
    EXPECT_GT(floor, 0);
    for (const auto& [name, values] : want.values.floats) {
      if (!name.starts_with(prefix)) continue;
      ASSERT_TRUE(got.floats.contains(name)) << name;
      EXPECT_LE(want.distance(name, got.floats.at(name), floor), limit) << name;
    }
    for (const auto& [name, values] : got.floats) {
      EXPECT_TRUE(!name.starts_with(prefix) || want.values.floats.contains(name)) << name;
    }
  }

  // The bf16 program with exact ops and rounded values.
  RoundedMaths naive_bf16() const {
    const auto model = open_model(want.folder);
    const auto adapter = read_adapter(want.folder + "/adapter", forward_program(model->spec, 1, {}));
    const std::vector<int32_t>& ids = want.values.integers.at("input_ids");
    const std::vector<int32_t>& labels = want.values.integers.at("labels");
    const size_t rows = ids.size(), width = rows / 2;
    const Program program = probe_program(model->spec, adapter->modules, static_cast<int64_t>(rows),
                                          ProbeGradients::adapter, {DType::bf16});
    std::map<std::string, std::vector<double>, std::less<>> statics;
    for (const WeightSource& source : model->weights.sources) {
      std::vector<float> values(static_cast<size_t>(source.shape.elements()));
      EXPECT_TRUE(
          load_weight(model->checkpoint, source, DType::f32, std::as_writable_bytes(std::span(values))).ok());
      statics[source.name].assign(values.begin(), values.end());
    }
    for (const auto& [name, values] : adapter->values) statics[name].assign(values.begin(), values.end());
    double trained = 0;
    for (size_t i = 0; i < rows; ++i) {
      const bool last = i % width == width - 1;
      statics[kIdsInput].push_back(ids[i]);
      statics[kPositionsInput].push_back(static_cast<double>(i % width));
      statics[kSequenceBeginInput].push_back(static_cast<double>(i - i % width));
      statics[kLabelsInput].push_back(last ? -100 : labels[i + 1]);
      statics[kRowsInput].push_back(static_cast<double>(i));
      trained += !last && labels[i + 1] >= 0;
    }
    statics[kLossSeedInput] = {1 / trained};
    const ReferenceValues all = evaluate_reference(program, statics, Rounding::to_dtype);
    RoundedMaths out;
    for (size_t i = 0; i < program.values.size(); ++i) {
      const Value& value = program.values[i];
      if (value.name == kLogitsOutput) out.values["logits"].assign(all[i].begin(), all[i].end());
      if (value.role == Role::output && value.name.starts_with(kGradientPrefix))
        out.values["lora_" + value.name].assign(all[i].begin(), all[i].end());
    }
    for (const Op& op : program.ops)
      out.chooses = out.chooses || op.def->name.find("top_k") != std::string_view::npos;
    return out;
  }

  std::string refused;  // why the device does not run this family; empty: it does
  GoldenReference want;
  Json facts;
  Demands demands;
  std::unique_ptr<Device> device;
};

TEST_P(Golden, BaseInFloat32) {
  ProbeRequest request;
  request.gradients = ProbeGradients::weights;
  request.greedy = static_cast<int64_t>(facts["greedy_margins"].size());
  const TensorFile got = run(request);
  if (!refused.empty()) GTEST_SKIP() << refused;
  ASSERT_TRUE(got.floats.contains("logits"));
  EXPECT_LE(want.distance("logits", got.floats.at("logits")), tolerance("logits"));
  const double loss = facts["loss"].get<double>();
  EXPECT_NEAR(got.floats.at("loss")[0], loss, std::max(2e-5 * loss, 1e-6));
  expect_gradients(got, "grad.", std::max(tolerance("grad"), want.slack() * demands.grad));
  const std::vector<int32_t>& greedy = got.integers.at("greedy_ids");
  const size_t prompt = greedy.size() - facts["greedy_margins"].size();
  for (size_t i = 0; i < facts["greedy_margins"].size(); ++i) {
    if (facts["greedy_margins"][i].get<double>() < 1e-3) break;  // from here on a tie decides
    EXPECT_EQ(greedy[prompt + i], want.values.integers.at("greedy_ids")[prompt + i]) << "token " << i;
  }
}

TEST_P(Golden, AdapterInFloat32) {
  ProbeRequest request;
  request.adapter = want.folder + "/adapter";
  request.gradients = ProbeGradients::adapter;
  request.train_steps = 6;
  request.lr = facts["lora_train"]["lr"].get<double>();
  request.clip = facts["lora_train"]["max_grad_norm"].get<double>();
  const TensorFile got = run(request);
  if (!refused.empty()) GTEST_SKIP() << refused;
  ASSERT_TRUE(got.floats.contains("logits"));
  EXPECT_LE(want.distance("lora_logits", got.floats.at("logits")), tolerance("logits"));
  const double loss = facts["lora_loss"].get<double>();
  EXPECT_NEAR(got.floats.at("loss")[0], loss, std::max(2e-5 * loss, 1e-6));
  expect_gradients(got, "lora_grad.", tolerance("lora_grad"));
  const auto losses = facts["lora_train"]["losses"].get<std::vector<double>>();
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(got.floats.at("train_losses")[i], losses[i],
                i > 0 && want.projected ? std::max(demands.train_loss, kPackedCurve) : demands.train_loss)
        << i;
}

// bf16: an error of at most kBf16Factor times that of the same maths with every op exact and every value
// rounded, plus one rounding. A small tensor may be lucky in the rounded maths, so the error of the whole
// gradient counts for it too. The curve stays with the float32 one.
//
// Where experts or keys are chosen, rounding moves those whose scores nearly tie, in either maths:
// then logits, the gradient as a whole and the curve are only asked to stay near.
TEST_P(Golden, AdapterInBf16) {
  constexpr double kBf16Factor = 3, kBf16Rounding = 0x1p-8;
  ProbeRequest request;
  request.compute = DType::bf16;
  request.adapter = want.folder + "/adapter";
  request.gradients = ProbeGradients::adapter;
  request.train_steps = 6;
  request.lr = facts["lora_train"]["lr"].get<double>();
  request.clip = facts["lora_train"]["max_grad_norm"].get<double>();
  const TensorFile got = run(request);
  if (!refused.empty()) GTEST_SKIP() << refused;
  ASSERT_TRUE(got.floats.contains("logits"));
  RoundedMaths naive = naive_bf16();
  naive.chooses = naive.chooses || demands.bf16_loss > 0;
  const auto limit = [this](double rounded) {
    return want.slack() * (kBf16Factor * rounded + kBf16Rounding);
  };
  EXPECT_LE(
      want.distance("lora_logits", got.floats.at("logits")),
      std::max(limit(want.distance("lora_logits", naive.values.at("logits"))), naive.chooses ? 0.25 : 0.0));
  double all_naive = 0, all_got = 0, all = norm_under("lora_grad.");
  for (const auto& [name, values] : naive.values) {
    if (name == "logits") continue;
    all_naive += std::pow(want.difference(name, values), 2);
    all_got += std::pow(want.difference(name, got.floats.at(name)), 2);
  }
  const double floor = 1e-4 * all, whole = std::sqrt(all_naive) / all;
  EXPECT_LE(std::sqrt(all_got) / all, std::max(limit(whole), naive.chooses ? demands.bf16_grad : 0.0));
  for (const auto& [name, values] : naive.values) {
    if (name == "logits" || naive.chooses) continue;
    EXPECT_LE(want.distance(name, got.floats.at(name), floor),
              limit(std::max(whole, want.distance(name, values, floor))))
        << name;
  }
  const auto losses = facts["lora_train"]["losses"].get<std::vector<double>>();
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(got.floats.at("train_losses")[i] / losses[i], 1,
                std::max(naive.chooses ? 0.25 : 0.1, want.slack() * demands.bf16_loss))
        << i;
}

TEST(GoldenRest, IsRefusedWithTheReason) {
  for (const std::string& path : golden_paths(false)) {
    const auto model = open_model(open_golden(path).folder);
    ASSERT_FALSE(model.ok()) << path << " opens, but is not in golden_supported.txt";
    EXPECT_EQ(model.error().code, ErrorCode::unsupported) << model.error().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(golden_paths(true)), [](const auto& info) {
  return golden_name(info.param) + (is_packed(info.param) ? "_packed" : "");
});

}  // namespace
}  // namespace tenon
