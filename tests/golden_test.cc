// Golden families: what transformers and peft computed in float64 against what Tenon computes through its
// whole path (checkpoint, spec, programs, plan, kernels). Tolerances as in the goldens' README: 2e-5, or four
// times the reference's own float32 error where that is more.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_device.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "io/write_file.h"
#include "models/family.h"
#include "run/probe.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct TensorFile {
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, std::vector<int32_t>> integers;
};

TensorFile read_tensors(const std::string& path) {
  TensorFile out;
  const auto file = MappedFile::open(path);
  EXPECT_TRUE(file.ok()) << path;
  const auto header = parse_safetensors(file->bytes());
  EXPECT_TRUE(header.ok()) << path;
  for (const TensorEntry& tensor : header->tensors) {
    const std::byte* from = file->bytes().data() + tensor.offset_bytes;
    const size_t count = static_cast<size_t>(tensor.shape.elements());
    if (tensor.dtype == DType::f32) {
      std::memcpy((out.floats[tensor.name] = std::vector<float>(count)).data(), from, count * 4);
    } else if (tensor.dtype == DType::i32) {
      std::memcpy((out.integers[tensor.name] = std::vector<int32_t>(count)).data(), from, count * 4);
    }
  }
  return out;
}

double norm(const std::vector<float>& x) {
  double sum = 0;
  for (float v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

// Norm of the difference over norm of the reference plus `floor`.
double distance(const std::vector<float>& got, const std::vector<float>& want, double floor = 0) {
  EXPECT_EQ(got.size(), want.size());
  double sum = 0;
  for (size_t i = 0; i < want.size() && i < got.size(); ++i) sum += std::pow(double{got[i]} - want[i], 2);
  return std::sqrt(sum) / (norm(want) + floor);
}

std::vector<std::string> golden_folders() {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(TENON_SOURCE_DIR "/tests/golden")) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto text = read_file(GetParam() + "/golden.json");
    ASSERT_TRUE(text.ok());
    facts = json::parse(*text);
    want = read_tensors(GetParam() + "/golden.safetensors");
    device = make_cpu_device(2);
  }

  // Runs a probe and reads what it wrote.
  TensorFile run(ProbeRequest request) {
    request.model = GetParam();
    request.tokens = GetParam() + "/golden.safetensors";
    request.out = testing::TempDir() + "/probe_" + fs::path(GetParam()).filename().string() + ".safetensors";
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
      if (name.starts_with(prefix)) EXPECT_TRUE(want.floats.contains(name)) << name;
    }
  }

  json facts;
  TensorFile want;
  std::unique_ptr<Device> device;
};

TEST_P(Golden, BaseInFloat32) {
  ProbeRequest request;
  request.gradients = ProbeGradients::weights;
  request.greedy = static_cast<int64_t>(facts["greedy_margins"].size());
  const TensorFile got = run(request);
  ASSERT_TRUE(got.floats.contains("logits"));
  EXPECT_LE(distance(got.floats.at("logits"), want.floats.at("logits")), tolerance("logits"));
  const double loss = facts["loss"];
  EXPECT_NEAR(got.floats.at("loss")[0], loss, std::max(2e-5 * loss, 1e-6));
  expect_gradients(got, "grad.", tolerance("grad"));
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

// bf16: within a factor of the rounding that eight bits of mantissa bring; the curve stays with the float32
// one.
TEST_P(Golden, AdapterInBf16) {
  ProbeRequest request;
  request.compute = DType::bf16;
  request.adapter = GetParam() + "/adapter";
  request.gradients = ProbeGradients::adapter;
  request.train_steps = 6;
  request.lr = facts["lora_train"]["lr"];
  request.clip = facts["lora_train"]["max_grad_norm"];
  const TensorFile got = run(request);
  ASSERT_TRUE(got.floats.contains("logits"));
  constexpr double kBf16 = 3e-2;
  EXPECT_LE(distance(got.floats.at("logits"), want.floats.at("lora_logits")), kBf16);
  expect_gradients(got, "lora_grad.", 2 * kBf16);
  const std::vector<double> losses = facts["lora_train"]["losses"];
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(got.floats.at("train_losses")[i], losses[i], kBf16) << i;
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(golden_folders()),
                         [](const auto& info) { return fs::path(info.param).filename().string(); });

}  // namespace
}  // namespace tenon
