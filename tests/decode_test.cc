// Decoding from caches gives what one run over the whole sequence gives, for every family, far beyond its
// windows and chunks: prefill in buckets, then a token at a time, against packed logits of the same ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "models/rope.h"
#include "run/generator.h"
#include "run/model.h"
#include "run/session.h"
#include "tests/golden_reference.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

constexpr int64_t kTokens = 120, kPrompt = 85;

// Any form of each supported family.
std::vector<std::string> decoding_families() {
  std::map<std::string, std::string> paths = full_goldens();
  paths.merge(packed_goldens());
  std::vector<std::string> out;
  for (const auto& [name, demands] : supported_families()) {
    if (const auto at = paths.find(name); at != paths.end()) out.push_back(at->second);
  }
  return out;
}

// The longest context that decoding serves, at most `wanted`.
int64_t served_tokens(const ModelSpec& spec, int64_t wanted) {
  if (!spec.position_path.empty() || !spec.position_table.empty())
    wanted = std::min(wanted, spec.max_positions);
  return wanted;
}

std::vector<float> packed_logits(const Model& model, const AdapterSet& adapter, Device& device,
                                 const std::vector<int32_t>& ids) {
  const int64_t tokens = static_cast<int64_t>(ids.size());
  std::vector<Program> programs = {
      probe_program(model.spec, adapter.modules, tokens, ProbeGradients::none, {})};
  auto plan = plan_programs(std::move(programs), model, device, {});
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  auto session = Session::open(std::move(*plan), model, &adapter, device);
  EXPECT_TRUE(session.ok()) << session.error().text();
  std::vector<int32_t> positions(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) positions[i] = static_cast<int32_t>(i);
  (*session)->write(kIdsInput, ids);
  (*session)->write(kPositionsInput, positions);
  (*session)->write(kSequenceBeginInput, std::vector<int32_t>(ids.size(), 0));
  (*session)->write(kLabelsInput, std::vector<int32_t>(ids.size(), -100));
  (*session)->write(kRowsInput, positions);
  EXPECT_TRUE((*session)->run(kLogits).ok());
  return (*session)->output_f32(kLogits, kLogitsOutput);
}

class Decoding : public testing::TestWithParam<std::string> {};

TEST_P(Decoding, EqualsOneRunOverTheSequence) {
  const std::unique_ptr<Device> device = test_device(1);
  const GoldenReference golden = open_golden(GetParam());
  const auto model = open_model(golden.folder);
  ASSERT_TRUE(model.ok()) << model.error().text();
  const auto adapter = read_adapter(golden.folder + "/adapter", forward_program(model->spec, 1, {}));
  ASSERT_TRUE(adapter.ok()) << adapter.error().text();
  const int64_t tokens = served_tokens(model->spec, kTokens);
  std::mt19937 random(7);
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(model->spec.vocab));
  const std::vector<float> want = packed_logits(*model, *adapter, *device, ids);
  GeneratorSettings settings;
  settings.context_tokens = std::max<int64_t>(tokens, 2);
  auto generator = Generator::open(*model, &*adapter, *device, settings);
  ASSERT_TRUE(generator.ok()) << generator.error().text();
  const size_t vocab = static_cast<size_t>(model->spec.vocab);
  size_t fed = 0;
  const auto feed = [&](size_t count) {
    const auto got = (*generator)->feed(std::span(ids).subspan(fed, count));
    ASSERT_TRUE(got.ok()) << got.error().text();
    fed += count;
    // Where frequencies follow the length, a shorter sequence is another one.
    if (frequency_regime(model->spec, static_cast<int64_t>(fed)) != frequency_regime(model->spec, tokens))
      return;
    const std::vector<float> row(want.begin() + static_cast<std::ptrdiff_t>((fed - 1) * vocab),
                                 want.begin() + static_cast<std::ptrdiff_t>(fed * vocab));
    EXPECT_LT(distance(*got, row), 1e-4) << "after " << fed << " tokens";
  };
  feed(std::min<size_t>(kPrompt, ids.size() * 2 / 3));
  while (fed < ids.size() && !HasFailure()) feed(1);
}

INSTANTIATE_TEST_SUITE_P(Families, Decoding, testing::ValuesIn(decoding_families()),
                         [](const auto& info) { return golden_name(info.param); });

}  // namespace
}  // namespace tenon
