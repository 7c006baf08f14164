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
#include <sstream>

#include "base/json.h"
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
std::string name_of(const std::string& folder) {
  return fs::path(folder).filename().string();
}

// What is asked of a family; the file explains it.
struct Demands {
  bool greedy = true;
  double train_loss = 1e-4;
  bool adapter = true;
  double bf16_loss = 0;  // where bf16 does not hold the curve, nor small gradients
  double grad = 0;       // where float32 asks for more than the golden's tolerance
};

// The tree whose tests/ and ../shared are read: TENON_TEST_TREE, or the one that this was built from.
std::string source_tree() {
  const char* tree = std::getenv("TENON_TEST_TREE");
  return tree != nullptr ? tree : TENON_SOURCE_DIR;
}

// Families that must pass, one a line: a regression fails by name.
std::map<std::string, Demands> supported() {
  std::ifstream file(source_tree() + "/tests/golden_supported.txt");
  std::map<std::string, Demands> families;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    Demands& demands = families[name];
    while (words >> word) {
      if (word == "no_greedy") demands.greedy = false;
      if (word == "train_loss") words >> demands.train_loss;
      if (word == "no_adapter") demands.adapter = false;
      if (word == "bf16_loss") words >> demands.bf16_loss;
      if (word == "grad") words >> demands.grad;
    }
  }
  return families;
}

// The folders of the repository, and those of ../shared/golden that are not among them: of families that are
// supported, or of the others.
std::vector<std::string> golden_folders(bool are_supported) {
  const std::map<std::string, Demands> families = supported();
  std::map<std::string, std::string> folders;
  for (const std::string& root : {source_tree() + "/tests/golden", source_tree() + "/../shared/golden"}) {
    if (!fs::is_directory(root)) continue;
    for (const auto& entry : fs::directory_iterator(root)) {
      if (entry.is_directory()) folders.emplace(name_of(entry.path().string()), entry.path().string());
    }
  }
  std::vector<std::string> out;
  for (const auto& [name, path] : folders) {
    if (families.contains(name) == are_supported) out.push_back(path);
  }
  return out;
}

struct RoundedMaths {
  std::map<std::string, std::vector<float>> values;  // "logits" and "lora_grad.<...>"
  bool chooses = false;                              // experts, by top-k
};

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto text = read_file(GetParam() + "/golden.json");
    ASSERT_TRUE(text.ok());
    facts = Json::parse(*text);
    want = read_tensors(GetParam() + "/golden.safetensors");
    device = test_device(1);
  }

  // Runs a probe and reads what it wrote.
  TensorFile run(ProbeRequest request) {
    request.model = GetParam();
    request.tokens = GetParam() + "/golden.safetensors";
    request.out = testing::TempDir() + "/probe_" + name_of(GetParam()) + ".safetensors";
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

  // The bf16 program with exact ops and rounded values.
  RoundedMaths naive_bf16() const {
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
    RoundedMaths out;
    for (size_t i = 0; i < program.values.size(); ++i) {
      const Value& value = program.values[i];
      if (value.name == kLogitsOutput) out.values["logits"].assign(all[i].begin(), all[i].end());
      if (value.role == Role::output && value.name.starts_with(kGradientPrefix))
        out.values["lora_" + value.name].assign(all[i].begin(), all[i].end());
    }
    for (const Op& op : program.ops) out.chooses = out.chooses || op.def->name == "top_k";
    return out;
  }

  std::string refused;  // why the device does not run this family; empty: it does
  Json facts;
  TensorFile want;
  std::unique_ptr<Device> device;
};

TEST_P(Golden, BaseInFloat32) {
  ProbeRequest request;
  request.gradients = ProbeGradients::weights;
  const bool decodes = supported()[name_of(GetParam())].greedy;
  if (decodes) request.greedy = static_cast<int64_t>(facts["greedy_margins"].size());
  const TensorFile got = run(request);
  if (!refused.empty()) GTEST_SKIP() << refused;
  ASSERT_TRUE(got.floats.contains("logits"));
  EXPECT_LE(distance(got.floats.at("logits"), want.floats.at("logits")), tolerance("logits"));
  const double loss = facts["loss"].get<double>();
  EXPECT_NEAR(got.floats.at("loss")[0], loss, std::max(2e-5 * loss, 1e-6));
  expect_gradients(got, "grad.", std::max(tolerance("grad"), supported()[name_of(GetParam())].grad));
  if (!decodes) return;
  const std::vector<int32_t>& greedy = got.integers.at("greedy_ids");
  const size_t prompt = greedy.size() - facts["greedy_margins"].size();
  for (size_t i = 0; i < facts["greedy_margins"].size(); ++i) {
    if (facts["greedy_margins"][i].get<double>() < 1e-3) break;  // from here on a tie decides
    EXPECT_EQ(greedy[prompt + i], want.integers.at("greedy_ids")[prompt + i]) << "token " << i;
  }
}

TEST_P(Golden, AdapterInFloat32) {
  if (!supported()[name_of(GetParam())].adapter) GTEST_SKIP() << "its adapter is refused";
  ProbeRequest request;
  request.adapter = GetParam() + "/adapter";
  request.gradients = ProbeGradients::adapter;
  request.train_steps = 6;
  request.lr = facts["lora_train"]["lr"].get<double>();
  request.clip = facts["lora_train"]["max_grad_norm"].get<double>();
  const TensorFile got = run(request);
  if (!refused.empty()) GTEST_SKIP() << refused;
  ASSERT_TRUE(got.floats.contains("logits"));
  EXPECT_LE(distance(got.floats.at("logits"), want.floats.at("lora_logits")), tolerance("logits"));
  const double loss = facts["lora_loss"].get<double>();
  EXPECT_NEAR(got.floats.at("loss")[0], loss, std::max(2e-5 * loss, 1e-6));
  expect_gradients(got, "lora_grad.", tolerance("lora_grad"));
  const Demands demands = supported()[name_of(GetParam())];
  const std::vector<double> losses = facts["lora_train"]["losses"].get<std::vector<double>>();
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(got.floats.at("train_losses")[i], losses[i], demands.train_loss) << i;
}

// bf16: an error of at most kBf16Factor times that of the same maths with every op exact and every value
// rounded, plus one rounding. A small tensor may be lucky in the rounded maths, so the error of the whole
// gradient counts for it too. The curve stays with the float32 one.
//
// Where experts are chosen, rounding moves tokens whose scores nearly tie to other experts, in either maths:
// then logits, the gradient as a whole and the curve are only asked to stay near.
TEST_P(Golden, AdapterInBf16) {
  const Demands demands = supported()[name_of(GetParam())];
  if (!demands.adapter) GTEST_SKIP() << "its adapter is refused";
  constexpr double kBf16Factor = 3, kBf16Rounding = 0x1p-8;
  ProbeRequest request;
  request.compute = DType::bf16;
  request.adapter = GetParam() + "/adapter";
  request.gradients = ProbeGradients::adapter;
  request.train_steps = 6;
  request.lr = facts["lora_train"]["lr"].get<double>();
  request.clip = facts["lora_train"]["max_grad_norm"].get<double>();
  const TensorFile got = run(request);
  if (!refused.empty()) GTEST_SKIP() << refused;
  ASSERT_TRUE(got.floats.contains("logits"));
  RoundedMaths naive = naive_bf16();
  naive.chooses = naive.chooses || demands.bf16_loss > 0;
  const auto limit = [](double rounded) { return kBf16Factor * rounded + kBf16Rounding; };
  const std::vector<float>& logits = want.floats.at("lora_logits");
  EXPECT_LE(distance(got.floats.at("logits"), logits),
            std::max(limit(distance(naive.values.at("logits"), logits)), naive.chooses ? 0.25 : 0.0));
  std::vector<float> all_exact, all_naive, all_got;
  for (const auto& [name, values] : naive.values) {
    if (name == "logits") continue;
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(all_exact, want.floats.at(name));
    append(all_naive, values);
    append(all_got, got.floats.at(name));
  }
  const double floor = 1e-4 * norm(all_exact), whole = distance(all_naive, all_exact);
  EXPECT_LE(distance(all_got, all_exact), std::max(limit(whole), naive.chooses ? 0.75 : 0.0));
  for (const auto& [name, values] : naive.values) {
    if (name == "logits" || naive.chooses) continue;
    const std::vector<float>& exact = want.floats.at(name);
    EXPECT_LE(distance(got.floats.at(name), exact, floor),
              limit(std::max(whole, distance(values, exact, floor))))
        << name;
  }
  const std::vector<double> losses = facts["lora_train"]["losses"].get<std::vector<double>>();
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(got.floats.at("train_losses")[i] / losses[i], 1,
                std::max(naive.chooses ? 0.25 : 0.1, demands.bf16_loss))
        << i;
}

TEST(GoldenRest, IsRefusedWithTheReason) {
  for (const std::string& folder : golden_folders(false)) {
    const auto model = open_model(folder);
    ASSERT_FALSE(model.ok()) << folder << " opens, but is not in golden_supported.txt";
    EXPECT_EQ(model.error().code, ErrorCode::unsupported) << model.error().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(golden_folders(true)),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tenon
