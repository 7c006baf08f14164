// Families that transformers reads through their own code, and so without a golden: the golden of the family
// that they are, its tensors packed as theirs are, gives the same logits.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "backend/cpu/cpu_device.h"
#include "base/json.h"
#include "io/json_file.h"
#include "io/safetensors.h"
#include "io/write_file.h"
#include "run/probe.h"
#include "tests/tensor_files.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, std::vector<float>>;

constexpr const char* kGolden = TENON_SOURCE_DIR "/tests/golden/llama";

// q, k and v of a layer by key head. The golden has one key head, which serves all queries: here each query
// head has a copy of it, so that there are several groups.
std::vector<float> by_key_head(const Tensors& tensors, const std::string& layer, size_t heads) {
  const std::vector<float>& q = tensors.at(layer + "self_attn.q_proj.weight");
  const auto share = static_cast<std::ptrdiff_t>(q.size() / heads);
  std::vector<float> out;
  for (size_t head = 0; head < heads; ++head) {
    const auto begin = q.begin() + static_cast<std::ptrdiff_t>(head) * share;
    out.insert(out.end(), begin, begin + share);
    for (const char* part : {"k", "v"}) {
      const std::vector<float>& rows = tensors.at(layer + "self_attn." + part + "_proj.weight");
      out.insert(out.end(), rows.begin(), rows.end());
    }
  }
  return out;
}

void write_model(const std::string& folder, const Json& config, const Tensors& tensors,
                 const std::map<std::string, int64_t>& columns) {
  fs::create_directories(folder);
  EXPECT_TRUE(write_file_atomic(folder + "/config.json", config.dump()).ok());
  std::vector<TensorSpec> specs;
  for (const auto& [name, values] : tensors) {
    const int64_t count = static_cast<int64_t>(values.size()), width = columns.at(name);
    specs.push_back({name, DType::f32, width == 1 ? Shape{count} : Shape{count / width, width}});
  }
  auto writer = create_safetensors(folder + "/model.safetensors", specs, {});
  ASSERT_TRUE(writer.ok());
  for (const auto& [name, values] : tensors)
    EXPECT_TRUE(writer->append(name, std::as_bytes(std::span(values))).ok());
  EXPECT_TRUE(writer->commit().ok());
}

TEST(RepackedFamilies, InternLm2IsLlamaWithOneMatrixByKeyHead) {
  const Tensors golden = read_tensors(std::string(kGolden) + "/model.safetensors").floats;
  Json config = *read_json_file(std::string(kGolden) + "/config.json");
  const auto size = [&](const char* key) { return config.at(key).get<int64_t>(); };
  const auto heads = static_cast<size_t>(size("num_attention_heads"));
  const auto layers = static_cast<size_t>(size("num_hidden_layers"));
  ASSERT_EQ(size("num_key_value_heads"), 1);
  ASSERT_GT(heads, 1u);
  const int64_t hidden = size("hidden_size"), inner = size("intermediate_size");
  const int64_t wide = size("num_attention_heads") * size("head_dim");
  Tensors packed;
  std::map<std::string, int64_t> columns;
  const auto put = [&](const std::string& name, std::vector<float> values, int64_t width) {
    packed[name] = std::move(values);
    columns[name] = width;
  };
  put("model.tok_embeddings.weight", golden.at("model.embed_tokens.weight"), hidden);
  put("model.norm.weight", golden.at("model.norm.weight"), 1);
  put("output.weight", golden.at("lm_head.weight"), hidden);
  for (size_t i = 0; i < layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    put(layer + "attention.wqkv.weight", by_key_head(golden, layer, heads), hidden);
    put(layer + "attention.wo.weight", golden.at(layer + "self_attn.o_proj.weight"), wide);
    put(layer + "feed_forward.w1.weight", golden.at(layer + "mlp.gate_proj.weight"), hidden);
    put(layer + "feed_forward.w3.weight", golden.at(layer + "mlp.up_proj.weight"), hidden);
    put(layer + "feed_forward.w2.weight", golden.at(layer + "mlp.down_proj.weight"), inner);
    put(layer + "attention_norm.weight", golden.at(layer + "input_layernorm.weight"), 1);
    put(layer + "ffn_norm.weight", golden.at(layer + "post_attention_layernorm.weight"), 1);
  }
  config["model_type"] = "internlm2";
  for (const char* key : {"architectures", "attention_bias", "mlp_bias"}) config.erase(key);
  config["bias"] = false;
  config["num_key_value_heads"] = static_cast<int64_t>(heads);
  const std::string folder = testing::TempDir() + "/repacked_internlm2";
  write_model(folder, config, packed, columns);
  ProbeRequest request;
  request.model = folder;
  request.tokens = std::string(kGolden) + "/golden.safetensors";
  request.out = folder + "/out.safetensors";
  const std::unique_ptr<Device> device = make_cpu_device(1);
  const auto summary = probe(request, *device);
  ASSERT_TRUE(summary.ok()) << summary.error().text();
  EXPECT_LE(distance(read_tensors(request.out).floats.at("logits"),
                     read_tensors(request.tokens).floats.at("logits")),
            2e-5);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tenon
