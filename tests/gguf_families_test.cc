// Golden families as GGUF files: written with the names and keys that the Python package gguf has for them
// (tests/gguf_names.txt) and with what llama.cpp's converter does to the weights, they give the numbers of
// the Hugging Face folder.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "io/write_file.h"
#include "models/weight_parts.h"
#include "run/model.h"
#include "run/probe.h"
#include "tests/gguf_converter.h"
#include "tests/golden_reference.h"
#include "tests/scratch_folder.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

class GgufFamily : public testing::TestWithParam<ConvertedFamily> {
 protected:
  void SetUp() override {
    std::map<std::string, std::string> paths = full_goldens();
    paths.merge(packed_goldens());
    if (!paths.contains(GetParam().golden)) GTEST_SKIP() << "there is no golden of it";
    golden = open_golden(paths.at(GetParam().golden));
    config = Json::parse(*read_file(golden.folder + "/config.json"));
    out = scratch_folder() + "/gguf_" + GetParam().test_name();
    fs::create_directories(out + "/hf");
  }
  void TearDown() override { fs::remove_all(out); }

  std::vector<float> logits(const std::string& model) {
    ProbeRequest request;
    request.model = model;
    request.tokens = golden.tokens;
    request.out = out + "/out.safetensors";
    const auto summary = probe(request, *device);
    EXPECT_TRUE(summary.ok()) << summary.error().text();
    return summary.ok() ? read_tensors(request.out).floats.at("logits") : std::vector<float>{};
  }

  GoldenReference golden;
  Json config;
  std::string out;
  std::unique_ptr<Device> device = test_device(1);
};

TEST_P(GgufFamily, GivesTheNumbersOfTheFolder) {
  use_llama_cpp_settings(GetParam(), config);
  ASSERT_TRUE(write_file_atomic(out + "/hf/config.json", config.dump()).ok());
  fs::copy_file(golden.folder + "/model.safetensors", out + "/hf/model.safetensors",
                fs::copy_options::overwrite_existing);
  write_converted(GetParam(), config, golden.folder, out + "/model.gguf");
  if (HasFailure()) return;
  const std::vector<float> want = logits(out + "/hf"), got = logits(out + "/model.gguf");
  ASSERT_FALSE(want.empty());
  // Keys are f32 and shifted norms are rounded once more; all else is the same bits.
  EXPECT_LE(distance(got, want), 1e-6);
}

// A GPU converts what is stored, but not -exp(x) to x.
class GgufWithStates : public GgufFamily {};

TEST_P(GgufWithStates, DecaysAreMadeOnTheHost) {
  use_llama_cpp_settings(GetParam(), config);
  write_converted(GetParam(), config, golden.folder, out + "/model.gguf");
  if (HasFailure()) return;
  const auto model = open_model(out + "/model.gguf");
  ASSERT_TRUE(model.ok()) << model.error().text();
  for (const WeightSource& source : model->weights.sources) {
    const bool decay = source.tensor().ends_with(".ssm_a");
    EXPECT_EQ(weight_parts(model->checkpoint, source, DType::f32).empty(), decay) << source.name;
  }
}

constexpr auto kTestName = [](const auto& info) { return info.param.test_name(); };
INSTANTIATE_TEST_SUITE_P(Families, GgufFamily, testing::ValuesIn(converted_families()), kTestName);
INSTANTIATE_TEST_SUITE_P(Families, GgufWithStates, testing::ValuesIn(converted_families("scan")), kTestName);

}  // namespace
}  // namespace tenon
