// The head rounds alike in training and in serving: in bf16 too, the loss is that of the logits.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "run/probe.h"
#include "tests/golden_reference.h"
#include "tests/scratch_folder.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

// Mean cross-entropy of logits [batch, tokens, vocab] with the labels that follow, in double.
double mean_loss(const std::vector<float>& logits, const std::vector<int32_t>& labels, size_t tokens) {
  const size_t vocab = logits.size() / labels.size();
  double sum = 0, count = 0;
  for (size_t i = 0; i + 1 < labels.size(); ++i) {
    if ((i + 1) % tokens == 0 || labels[i + 1] < 0) continue;
    double total = 0;
    for (size_t v = 0; v < vocab; ++v) total += std::exp(static_cast<double>(logits[i * vocab + v]));
    sum += std::log(total) - static_cast<double>(logits[i * vocab + static_cast<size_t>(labels[i + 1])]);
    ++count;
  }
  return sum / count;
}

// Heads with factors by channel, with a bias, with a soft cap, with a scale, and plain ones.
class HeadRounding : public testing::TestWithParam<const char*> {};

TEST_P(HeadRounding, TheLossInBf16IsThatOfTheLogits) {
  const auto paths = packed_goldens();
  const GoldenReference golden = open_golden(paths.at(GetParam()));
  const auto device = test_device(1);
  ProbeRequest request;
  request.model = golden.folder;
  request.tokens = golden.tokens;
  request.out = scratch_folder() + "/head_" + GetParam() + ".safetensors";
  request.compute = DType::bf16;
  const auto summary = probe(request, *device);
  ASSERT_TRUE(summary.ok()) << summary.error().text();
  const TensorFile tokens = read_tensors(golden.tokens);
  const std::vector<int32_t>& labels = tokens.integers.at("labels");
  constexpr size_t kSequences = 2;  // of every golden
  const double want =
      mean_loss(read_tensors(request.out).floats.at("logits"), labels, labels.size() / kSequences);
  EXPECT_NEAR(summary->loss, want, 2e-6 * want);
  std::filesystem::remove(request.out);
}

INSTANTIATE_TEST_SUITE_P(Families, HeadRounding, testing::Values("dory", "phi", "gemma2", "cohere", "qwen3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon
