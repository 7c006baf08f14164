// Golden families: what transformers and peft computed in float64 against what Tenon computes through its
// whole path (checkpoint, spec, programs, plan, kernels). Tolerances as in the goldens' README: 2e-5, or four
// times the reference's own float32 error where that is more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "io/write_file.h"
#include "ops/interpret.h"
#include "run/adapter_set.h"
#include "run/model.h"
#include "run/probe.h"
#include "tests/tensor_files.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string name_of(const std::string& folder) {
  return fs::path(folder).filename().string();
}

// The tree whose tests/ and ../shared are read: TENON_TEST_TREE, or the one that this was built from.
std::string source_tree() {
  const char* tree = std::getenv("TENON_TEST_TREE");
  return tree != nullptr ? tree : TENON_SOURCE_DIR;
}

// Families that must pass, one a line: a regression fails by name. After a name, "no_greedy" says that cached
// decoding as far as the golden goes is refused.
std::map<std::string, std::string> supported() {
  std::ifstream file(source_tree() + "/tests/golden_supported.txt");
  std::map<std::string, std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' ');
    names[line.substr(0, space)] = space == std::string::npos ? "" : line.substr(space + 1);
  }
  return names;
}

// The folders of the repository, and those of ../shared/golden that are not among them.
std::vector<std::string> golden_folders() {
  std::map<std::string, std::string> folders;
  for (const std::string& root : {source_tree() + "/tests/golden", source_tree() + "/../shared/golden"}) {
    if (!fs::is_directory(root)) continue;
    for (const auto& entry : fs::directory_iterator(root)) {
      if (entry.is_directory()) folders.emplace(name_of(entry.path().string()), entry.path().string());
    }
  }
  std::vector<std::string> out;
  for (const auto& [name, path] : folders) out.push_back(path);
  return out;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!supported().contains(name_of(GetParam()))) {
      const auto model = open_model(GetParam());
      ASSERT_FALSE(model.ok()) << "opens, but is not in golden_supported.txt";
      GTEST_SKIP() << model.error().text();
    }
    const auto text = read_file(GetParam() + "/golden.json");
    ASSERT_TRUE(text.ok());
    facts = json::parse(*text);
    want = read_tensors(GetParam() + "/golden.safetensors");
    device = test_device(2);
  }

  // Runs a probe and reads what it wrote.
  TensorFile run(ProbeRequest request) {
    request.model = GetParam();
    request.tokens = GetParam() + "/golden.safetensors";
    request.out = testing::TempDir() + "/probe_" + name_of(GetParam()) + ".safetensors";
    const auto summary = probe(request, *device);
    EXPECT_TRUE(summary.ok()) << summary.error().text();
    return summary.ok() ? read_tensors(request.out) : TensorFile{};
  }

  double tolerance(const char* kind) const {
    return std::max(2e-5, 4 * facts["float32_error"][kind].get<double>());
  }

  // Every reference gradient under `prefix` is there and close; nothing else is.
  void expect_gradients(const TensorFile& got, const std::string& prefix, double limit) {
    double all = 0;
    size_t count = 0;
    for (const auto& [name, values] : want.floats) {
      if (name.starts_with(prefix)) all += std::pow(norm(values), 2);
    }
    for (const auto& [name, values] : want.floats) {
      if (!name.starts_with(prefix)) continue;
      ++count;
      ASSERT_TRUE(got.floats.contains(name)) << name;
      EXPECT_LE(distance(got.floats.at(name), values, 1e-4 * std::sqrt(all)), limit) << name;
    }
    EXPECT_GT(count, 0u);
    for (const auto& [name, values] : got.floats) {
      EXPECT_TRUE(!name.starts_with(prefix) || want.floats.contains(name)) << name;
    }
  }

  // "logits" and "lora_grad.<...>" of the bf16 program with exact ops and rounded values.
  std::map<std::string, std::vector<float>> naive_bf16() const {
    const auto model = open_model(GetParam());
    const auto adapter = read_adapter(GetParam() + "/adapter", forward_program(model->spec, 1, {}));
    const std::vector<int32_t>& ids = want.integers.at("input_ids");
    const std::vector<int32_t>& labels = want.integers.at("labels");
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
    std::map<std::string, std::vector<float>> out;
    for (size_t i = 0; i < program.values.size(); ++i) {
      const Value& value = program.values[i];
      if (value.name == kLogitsOutput) out["logits"].assign(all[i].begin(), all[i].end());
      if (value.role == Role::output && value.name.starts_with(kGradientPrefix)) {
        out["lora_" + value.name].assign(all[i].begin(), all[i].end());
      }
    }
    return out;
  }

  json facts;
  TensorFile want;
  std::unique_ptr<Device> device;
};

TEST_P(Golden, BaseInFloat32) {
  ProbeRequest request;
  request.gradients = ProbeGradients::weights;
  const bool decodes = supported()[name_of(GetParam())] != "no_greedy";
  if (decodes) request.greedy = static_cast<int64_t>(facts["greedy_margins"].size());
  const TensorFile got = run(request);
  ASSERT_TRUE(got.floats.contains("logits"));
  EXPECT_LE(distance(got.floats.at("logits"), want.floats.at("logits")), tolerance("logits"));
  const double loss = facts["loss"];
  EXPECT_NEAR(got.floats.at("loss")[0], loss, std::max(2e-5 * loss, 1e-6));
  expect_gradients(got, "grad.", tolerance("grad"));
  if (!decodes) return;
  const std::vector<int32_t>& greedy = got.integers.at("greedy_ids");
  const size_t prompt = greedy.size() - facts["greedy_margins"].size();
  for (size_t i = 0; i < facts["greedy_margins"].size(); ++i) {
    if (facts["greedy_margins"][i].get<double>() < 1e-3) break;  // from here on a tie decides
    EXPECT_EQ(greedy[prompt + i], want.integers.at("greedy_ids")[prompt + i]) << "token " << i;
  }
}

TEST_P(Golden, AdapterInFloat32) {
  ProbeRequest request;
  request.adapter = GetParam() + "/adapter";
  request.gradients = ProbeGradients::adapter;
  request.train_steps = 6;
  request.lr = facts["lora_train"]["lr"];
  request.clip = facts["lora_train"]["max_grad_norm"];
  const TensorFile got = run(request);
  ASSERT_TRUE(got.floats.contains("logits"));
  EXPECT_LE(distance(got.floats.at("logits"), want.floats.at("lora_logits")), tolerance("logits"));
  const double loss = facts["lora_loss"];
  EXPECT_NEAR(got.floats.at("loss")[0], loss, std::max(2e-5 * loss, 1e-6));
  expect_gradients(got, "lora_grad.", tolerance("lora_grad"));
  const std::vector<double> losses = facts["lora_train"]["losses"];
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(got.floats.at("train_losses")[i], losses[i], 1e-4) << i;
}

// bf16: an error of at most kBf16Factor times that of the same maths with every op exact and every value
// rounded, plus one rounding. The curve stays with the float32 one.
TEST_P(Golden, AdapterInBf16) {
  constexpr double kBf16Factor = 2.5, kBf16Rounding = 0x1p-8;
  ProbeRequest request;
  request.compute = DType::bf16;
  request.adapter = GetParam() + "/adapter";
  request.gradients = ProbeGradients::adapter;
  request.train_steps = 6;
  request.lr = facts["lora_train"]["lr"];
  request.clip = facts["lora_train"]["max_grad_norm"];
  const TensorFile got = run(request);
  ASSERT_TRUE(got.floats.contains("logits"));
  const std::map<std::string, std::vector<float>> naive = naive_bf16();
  double all = 0;
  for (const auto& [name, values] : want.floats)
    all += name.starts_with("lora_grad.") ? std::pow(norm(values), 2) : 0;
  for (const auto& [name, values] : naive) {
    const std::vector<float>& exact = want.floats.at(name == "logits" ? "lora_logits" : name);
    const double floor = name == "logits" ? 0 : 1e-4 * std::sqrt(all);
    const double limit = kBf16Factor * distance(values, exact, floor) + kBf16Rounding;
    EXPECT_LE(distance(got.floats.at(name), exact, floor), limit) << name;
  }
  const std::vector<double> losses = facts["lora_train"]["losses"];
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(got.floats.at("train_losses")[i] / losses[i], 1, 0.05) << i;
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(golden_folders()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tenon
