// Layers that keep a state along the sequence: two sequences in one pack give what each gives alone, bit for
// bit, since the state and the convolution begin anew where a sequence does.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "backend/cpu/cpu_device.h"
#include "io/safetensors.h"
#include "io/test_folder.h"
#include "run/probe.h"
#include "tests/tensor_files.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& name) {
  for (const char* root : {TENON_SOURCE_DIR "/tests/golden", TENON_SOURCE_DIR "/../shared/golden"}) {
    if (fs::is_directory(fs::path(root) / name)) return (fs::path(root) / name).string();
  }
  return {};
}

class PackedStates : public testing::TestWithParam<const char*> {
 protected:
  std::vector<float> logits(const std::string& folder, const std::string& tokens) {
    ProbeRequest request;
    request.model = folder;
    request.tokens = tokens;
    request.out = files.path() + "/out.safetensors";
    const auto summary = probe(request, *device);
    EXPECT_TRUE(summary.ok()) << summary.error().text();
    return summary.ok() ? read_tensors(request.out).floats.at("logits") : std::vector<float>{};
  }

  // One row of ids and labels as a file of its own.
  std::string row_file(const TensorFile& both, size_t row, size_t width) {
    const std::string path = files.path() + "/row.safetensors";
    std::vector<TensorSpec> specs;
    for (const char* name : {"input_ids", "labels"})
      specs.push_back({name, DType::i32, Shape{1, static_cast<int64_t>(width)}});
    auto writer = create_safetensors(path, specs, {});
    EXPECT_TRUE(writer.ok());
    for (const TensorSpec& spec : specs) {
      const std::span<const int32_t> values(both.integers.at(spec.name).data() + row * width, width);
      EXPECT_TRUE(writer->append(spec.name, std::as_bytes(values)).ok());
    }
    EXPECT_TRUE(writer->commit().ok());
    return path;
  }

  TestFolder files;
  std::unique_ptr<Device> device = make_cpu_device(2);
};

TEST_P(PackedStates, EqualSeparateSequences) {
  const std::string folder = folder_of(GetParam());
  if (folder.empty()) GTEST_SKIP() << "there is no golden folder " << GetParam();
  const std::string tokens = folder + "/golden.safetensors";
  const TensorFile both = read_tensors(tokens);
  const size_t width = both.integers.at("input_ids").size() / 2;
  const std::vector<float> packed = logits(folder, tokens);
  for (size_t row = 0; row < 2; ++row) {
    const std::vector<float> alone = logits(folder, row_file(both, row, width));
    ASSERT_EQ(alone.size() * 2, packed.size());
    EXPECT_EQ(std::memcmp(alone.data(), packed.data() + row * alone.size(), alone.size() * 4), 0)
        << "row " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PackedStates,
                         testing::Values("lfm2", "qwen3_next", "kimi_linear", "nemotron_h", "jamba",
                                         "minimax", "recurrent_gemma", "deepseek_v4", "hy_v4", "minimax_m3",
                                         "qwen4_exp_ple", "doge", "zaya", "rwkv", "xlstm", "dory", "inkling",
                                         "inkling2", "inkling2_loop"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tenon
