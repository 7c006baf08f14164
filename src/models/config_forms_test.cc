#include "models/config_forms.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "models/family.h"

namespace tenon {
namespace {

TEST(ConfigForms, TextPartsAreReadAloneWithTheirDefaults) {
  const Json outer = {{"model_type", "gemma3"},
                      {"architectures", Json::array({"Gemma3ForConditionalGeneration"})},
                      {"mm_tokens_per_image", 256},
                      {"text_config",
                       {{"model_type", "gemma3_text"},
                        {"hidden_size", 2560},
                        {"intermediate_size", 10240},
                        {"num_hidden_layers", 34},
                        {"sliding_window", 1024},
                        {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}}}},
                      {"vision_config", {{"hidden_size", 1152}}}};
  const auto spec = read_model_spec(outer, "config.json");
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_TRUE(spec->multimodal);
  EXPECT_EQ(spec->hidden, 2560);
  EXPECT_EQ(spec->vocab, 262208);
  EXPECT_TRUE(spec->tied);
  EXPECT_EQ(spec->blocks.size(), 34u);
  const auto& sliding = std::get<AttentionSpec>(spec->blocks[0].mixer);
  const auto& full = std::get<AttentionSpec>(spec->blocks[5].mixer);
  EXPECT_EQ(sliding.attend.window, 1024);
  EXPECT_EQ(full.attend.window, 0);
  // Linear scaling is for the layers that see all.
  const RopeSpec& far = spec->ropes[static_cast<size_t>(full.rope)];
  const RopeSpec& near = spec->ropes[static_cast<size_t>(sliding.rope)];
  EXPECT_FLOAT_EQ(far.inv_freq[0], 1.0f / 8);
  EXPECT_FLOAT_EQ(near.inv_freq[0], 1.0f);
}

TEST(ConfigForms, SectionsOfImagePositionsSayNothingAboutText) {
  const Json config = {{"model_type", "qwen2_vl"},
                       {"hidden_size", 32},
                       {"intermediate_size", 64},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},
                       {"vocab_size", 100},
                       {"max_position_embeddings", 128},
                       {"rms_norm_eps", 1e-6},
                       {"rope_theta", 1e6},
                       {"rope_scaling", {{"type", "mrope"}, {"mrope_section", Json::array({2, 3, 3})}}},
                       {"vision_config", {{"depth", 1}}}};
  const auto spec = read_model_spec(config, "config.json");
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_EQ(spec->family, "qwen2");
  EXPECT_EQ(spec->ropes[0].amplitude, 1);
}

Json llama_with(const char* key, const Json& value) {
  Json config = {{"model_type", "llama"},    {"hidden_size", 32},
                 {"intermediate_size", 64},  {"num_hidden_layers", 1},
                 {"num_attention_heads", 2}, {"vocab_size", 100},
                 {"rms_norm_eps", 1e-6},     {"max_position_embeddings", 128}};
  config[key] = value;
  return config;
}

TEST(ConfigForms, SwitchesOfWhatIsNotBuiltAreRefusedAndHarmlessWhereOff) {
  for (const char* key : {"rope_interleaved", "use_mrope", "add_cross_attention", "is_encoder_decoder",
                          "output_router_logits"}) {
    EXPECT_TRUE(read_model_spec(llama_with(key, false), "config.json").ok()) << key;
    const auto on = read_model_spec(llama_with(key, true), "config.json");
    ASSERT_FALSE(on.ok()) << key;
    EXPECT_NE(on.error().text().find(key), std::string::npos) << on.error().text();
  }
  EXPECT_FALSE(read_model_spec(llama_with("sliding_window_size", 16), "config.json").ok());
}

TEST(ConfigForms, SizesOfWhichNoWeightCanBeMadeAreRefused) {
  Json three = llama_with("hidden_size", 1 << 22);
  three["vocab_size"] = three["intermediate_size"] = 1 << 22;
  for (const Json& config : {llama_with("hidden_size", int64_t{1} << 40), three}) {
    const auto spec = read_model_spec(config, "config.json");
    ASSERT_FALSE(spec.ok());
    EXPECT_NE(spec.error().text().find("implausibly large"), std::string::npos) << spec.error().text();
  }
}

TEST(ConfigForms, CodeOfACheckpointThatIsNotServedIsRefusedWithTheReason) {
  for (const char* model_type : {"chatglm", "minicpm"}) {
    const auto spec = read_model_spec(llama_with("model_type", model_type), "config.json");
    ASSERT_FALSE(spec.ok());
    EXPECT_NE(spec.error().text().find(std::string(model_type) + "' is not supported: its "),
              std::string::npos)
        << spec.error().text();
  }
}

TEST(ConfigForms, RotaryDimAloneSaysHowMuchOfAHeadMiniMaxM2Rotates) {
  Json config = llama_with("model_type", "minimax_m2");
  config["head_dim"] = 16;
  config["rotary_dim"] = 8;
  config["num_local_experts"] = 2;
  config["num_experts_per_tok"] = 1;
  const auto spec = read_model_spec(config, "config.json");
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_EQ(spec->ropes.at(0).inv_freq.size(), 4u);
}

// Values that would ask for more than there is, or take hours to list.
TEST(ConfigForms, ImplausibleSizesAreRefusedByTheirKeys) {
  const auto refusal = [](const char* key, int64_t value) {
    Json config = llama_with("model_type", "mixtral");
    config["num_local_experts"] = 2;
    config["num_experts_per_tok"] = 1;
    config[key] = value;
    const auto spec = read_model_spec(config, "config.json");
    return spec.ok() ? std::string() : spec.error().text();
  };
  EXPECT_EQ(refusal("num_experts_per_tok", 2), "");
  EXPECT_NE(refusal("num_experts_per_tok", 3).find("3 experts are chosen for a token, of 2"),
            std::string::npos);
  EXPECT_NE(refusal("num_local_experts", int64_t{1} << 31).find("num_local_experts"), std::string::npos);
  EXPECT_NE(refusal("head_dim", int64_t{1} << 40).find("head_dim"), std::string::npos);
}

TEST(ConfigForms, MethodsThatCannotBeReadAreRefusedByName) {
  const auto refusal = [](const Json& quantisation) {
    const auto got = read_quantisation({{"quantization_config", quantisation}}, "config.json");
    return got.ok() ? std::string() : got.error().text();
  };
  EXPECT_NE(refusal({{"quant_method", "gptq"}, {"bits", 4}}).find("gptq"), std::string::npos);
  EXPECT_NE(
      refusal({{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}}).find("pack-quantized"),
      std::string::npos);
  EXPECT_EQ(refusal({{"quant_method", "mxfp4"}}), "");
  const auto fp8 = read_quantisation(
      {{"quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", Json::array({128, 64})}}}},
      "config.json");
  ASSERT_TRUE(fp8.ok());
  EXPECT_EQ(fp8->block_rows, 128);
  EXPECT_EQ(fp8->block_columns, 64);
  EXPECT_NE(refusal({{"quant_method", "fp8"}, {"weight_block_size", Json::array({0, 64})}}), "");
}

TEST(ConfigForms, UnknownKeysInObjectsAreRefusedByTheirPath) {
  Json config = llama_with("rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}, {"beta_fast", 32.0}});
  EXPECT_TRUE(read_model_spec(config, "config.json").ok());  // yarn's, which says nothing here
  config["rope_scaling"]["alpha"] = 1000.0;
  const auto refused = read_model_spec(config, "config.json");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text().find("'rope_scaling.alpha'"), std::string::npos) << refused.error().text();
}

TEST(ConfigForms, AmplitudesByLengthReplaceLongropesOwn) {
  Json config = llama_with("num_local_experts", 4);
  config["model_type"] = "phimoe";
  config["num_experts_per_tok"] = 2;
  const Json factors = std::vector<double>(8, 1.5);
  config["rope_scaling"] = {{"type", "longrope"},
                            {"short_factor", factors},
                            {"long_factor", factors},
                            {"short_mscale", 1.243163121016122},
                            {"long_mscale", 1.243163121016122},
                            {"original_max_position_embeddings", 64}};
  const auto spec = read_model_spec(config, "config.json");
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_EQ(spec->ropes[0].amplitude, 1.243163121016122);
  config["rope_scaling"]["long_mscale"] = 1.5;
  EXPECT_FALSE(read_model_spec(config, "config.json").ok());
}

}  // namespace
}  // namespace tenon
