#include "models/gguf_config.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/gguf_writer.h"
#include "models/family.h"

namespace tenon {
namespace {

// The configuration of a file of an architecture's usual sizes and more metadata.
Result<Json> config_of(const std::string& architecture, void (*add_more)(GgufHeader&),
                       std::vector<std::string> names = {}) {
  const std::string path = testing::TempDir() + "/gguf_config_test.gguf";
  GgufHeader header;
  header.add_string("general.architecture", architecture);
  header.add_u32(architecture + ".embedding_length", 8);
  header.add_u32(architecture + ".block_count", 4);
  header.add_u32(architecture + ".context_length", 64);
  header.add_f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
  add_more(header);
  names.insert(names.begin(), "token_embd.weight");
  std::vector<TensorSpec> specs;
  for (const std::string& name : names) specs.push_back({name, DType::f32, Shape{2, 8}});
  const std::vector<float> zeros(16, 0.0F);
  auto writer = create_gguf(path, header, specs);
  EXPECT_TRUE(writer.ok());
  for (const std::string& name : names)
    EXPECT_TRUE(writer->append(name, std::as_bytes(std::span(zeros))).ok());
  EXPECT_TRUE(writer->commit().ok());
  auto checkpoint = Checkpoint::open(path);
  EXPECT_TRUE(checkpoint.ok());
  Result<Json> config = gguf_config(*checkpoint);
  std::filesystem::remove(path);
  return config;
}

void add_llama(GgufHeader& header) {
  header.add_u32("llama.attention.head_count", 2);
  header.add_u32("llama.feed_forward_length", 16);
}

TEST(GgufConfig, AKeyThatIsNotReadIsRefusedByName) {
  const auto clamped = config_of("llama", [](GgufHeader& header) {
    add_llama(header);
    header.add_f32("llama.attention.clamp_kqv", 8);
  });
  ASSERT_FALSE(clamped.ok());
  EXPECT_NE(clamped.error().text().find("llama.attention.clamp_kqv"), std::string::npos);
}

TEST(GgufConfig, AKeyThatChangesNothingIsNotRefused) {
  const auto config = config_of("llama", [](GgufHeader& header) {
    add_llama(header);
    header.add_f32("llama.attention.clamp_kqv", 0);
    header.add_f32("llama.rope.scaling.attn_factor", 1);
    header.add_u32("llama.vocab_size", 2);
    header.add_bool("llama.attention.causal", true);
  });
  EXPECT_TRUE(config.ok()) << config.error().text();
}

TEST(GgufConfig, RoutersThatScoreInAnotherWayAreRefused) {
  const auto config = config_of("llama", [](GgufHeader& header) {
    add_llama(header);
    header.add_u32("llama.expert_gating_func", 2);
  });
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.error().text().find("llama.expert_gating_func"), std::string::npos);
}

void add_jamba(GgufHeader& header, const std::vector<int32_t>& heads) {
  header.add_u32("jamba.attention.head_count", 2);
  header.add_u32("jamba.feed_forward_length", 16);
  header.add_i32s("jamba.attention.head_count_kv", heads);
}

TEST(GgufConfig, JambasListOfHeadsBecomesAPeriod) {
  const auto config = config_of("jamba", [](GgufHeader& header) { add_jamba(header, {0, 1, 0, 1}); });
  ASSERT_TRUE(config.ok()) << config.error().text();
  EXPECT_EQ((*config)["attn_layer_offset"].get<int64_t>(), 1);
  EXPECT_EQ((*config)["attn_layer_period"].get<int64_t>(), 2);
  EXPECT_EQ((*config)["num_key_value_heads"].get<int64_t>(), 1);
}

TEST(GgufConfig, LayersAtUnequalDistancesAreRefused) {
  const auto config = config_of("jamba", [](GgufHeader& header) { add_jamba(header, {1, 1, 0, 1}); });
  EXPECT_FALSE(config.ok());
}

TEST(GgufConfig, LayersOfDifferentSizesAreRefusedByKey) {
  const auto config = config_of("jamba", [](GgufHeader& header) { add_jamba(header, {1, 2, 0, 1}); });
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.error().text().find("jamba.attention.head_count_kv"), std::string::npos);
}

void add_deepseek(GgufHeader& header) {
  header.add_u32("deepseek2.attention.head_count", 2);
  header.add_u32("deepseek2.feed_forward_length", 16);
  header.add_u32("deepseek2.attention.kv_lora_rank", 4);
  header.add_u32("deepseek2.attention.key_length", 6);
  header.add_u32("deepseek2.attention.value_length", 4);
  header.add_u32("deepseek2.rope.dimension_count", 2);
  header.add_u32("deepseek2.expert_count", 4);
  header.add_u32("deepseek2.expert_used_count", 2);
  header.add_u32("deepseek2.leading_dense_block_count", 1);
}

// As llama.cpp takes files from before the key expert_gating_func.
TEST(GgufConfig, DeepSeeksRoutersAreToldApartByTheirBias) {
  const auto v2 = config_of("deepseek2", add_deepseek);
  const auto v3 = config_of("deepseek2", add_deepseek, {"blk.1.exp_probs_b.bias"});
  ASSERT_TRUE(v2.ok() && v3.ok());
  EXPECT_EQ((*v2)["model_type"].get<std::string>(), "deepseek_v2");
  EXPECT_EQ((*v3)["model_type"].get<std::string>(), "deepseek_v3");
  EXPECT_EQ((*v2)["qk_nope_head_dim"].get<int64_t>(), 4);
}

TEST(GgufConfig, AListOfWindowedLayersIsTakenAsItIs) {
  const auto config = config_of("exaone4", [](GgufHeader& header) {
    header.add_u32("exaone4.attention.head_count", 2);
    header.add_u32("exaone4.feed_forward_length", 16);
    header.add_u32("exaone4.attention.sliding_window", 8);
    header.add_i32s("exaone4.attention.sliding_window_pattern", std::vector<int32_t>{1, 0, 0, 1});
  });
  ASSERT_TRUE(config.ok()) << config.error().text();
  const std::vector<std::string> want = {"sliding_attention", "full_attention", "full_attention",
                                         "sliding_attention"};
  EXPECT_EQ((*config)["layer_types"].get<std::vector<std::string>>(), want);
}

}  // namespace
}  // namespace tenon
