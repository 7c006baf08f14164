// Checkpoints as they are published, made from goldens by renaming, re-packing and quantising: what they give
// is what the golden's own folder gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/json.h"
#include "io/checkpoint.h"
#include "io/write_file.h"
#include "run/model.h"
#include "run/probe.h"
#include "tests/golden_reference.h"
#include "tests/scratch_folder.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// A tensor as a safetensors header names its type.
struct Stored {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

Stored stored_floats(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {std::move(name), "F32", std::move(shape), {bytes.begin(), bytes.end()}};
}

std::vector<float> floats_of(const Stored& tensor) {
  std::vector<float> out(tensor.bytes.size() / sizeof(float));
  std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

class CheckpointFamilies : public testing::Test {
 protected:
  void SetUp() override {
    out = scratch_folder() + "/families_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(out);
    fs::create_directories(out);
  }
  void TearDown() override { fs::remove_all(out); }

  // A golden of the repository: its configuration and tensors.
  void open(const std::string& name) {
    const std::string folder = source_tree() + "/tests/golden/" + name;
    open_folder(folder, folder + "/golden.safetensors");
  }

  void open_folder(const std::string& folder, const std::string& tokens_path) {
    golden = folder;
    tokens = tokens_path;
    config = Json::parse(*read_file(golden + "/config.json"));
    const auto checkpoint = Checkpoint::open(golden);
    ASSERT_TRUE(checkpoint.ok());
    for (const CheckpointTensor& tensor : checkpoint->tensors()) {
      const auto bytes = checkpoint->bytes(tensor);
      std::vector<int64_t> shape;
      for (int64_t dim : tensor.shape.dims()) shape.push_back(dim);
      tensors.push_back({tensor.name, "F32", shape, {bytes.begin(), bytes.end()}});
    }
  }

  Stored take(const std::string& name) {
    const auto at = std::ranges::find(tensors, name, &Stored::name);
    EXPECT_NE(at, tensors.end()) << name;
    Stored found = std::move(*at);
    tensors.erase(at);
    return found;
  }

  void rename(const std::string& from, const std::string& to) {
    for (Stored& tensor : tensors) {
      if (const size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, from.size(), to);
    }
  }

  std::string write(const std::string& name) {
    const std::string folder = out + "/" + name;
    fs::create_directories(folder);
    Json header = Json::object();
    std::string data;
    for (const Stored& tensor : tensors) {
      const size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
      header[tensor.name] = Json{{"dtype", tensor.dtype},
                                 {"shape", Json(tensor.shape)},
                                 {"data_offsets", Json::array({begin, data.size()})}};
    }
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
    EXPECT_TRUE(write_file_atomic(folder + "/model.safetensors", file + text + data).ok());
    EXPECT_TRUE(write_file_atomic(folder + "/config.json", config.dump()).ok());
    return folder;
  }

  std::vector<float> logits(const std::string& model) {
    ProbeRequest request;
    request.model = model;
    request.tokens = tokens;
    request.out = out + "/out.safetensors";
    const auto summary = probe(request, *device);
    EXPECT_TRUE(summary.ok()) << summary.error().text();
    return summary.ok() ? read_tensors(request.out).floats.at("logits") : std::vector<float>{};
  }

  std::string golden, tokens, out;
  Json config;
  std::vector<Stored> tensors;
  std::unique_ptr<Device> device = test_device(1);
};

// wqkv of InternLM2: for each key head its queries, its key and its value, head by head.
TEST_F(CheckpointFamilies, InternLm2IsLlamaRepacked) {
  open("llama");
  const size_t kv_heads = config["num_key_value_heads"].get<size_t>();
  for (int64_t layer = 0; layer < config["num_hidden_layers"].get<int64_t>(); ++layer) {
    const std::string path = "model.layers." + std::to_string(layer) + ".self_attn.";
    std::vector<float> parts[3];
    for (size_t i = 0; i < 3; ++i) parts[i] = floats_of(take(path + "qkv"[i] + "_proj.weight"));
    std::vector<float> fused;
    for (size_t head = 0; head < kv_heads; ++head) {
      for (const std::vector<float>& part : parts) {
        const auto share = static_cast<std::ptrdiff_t>(part.size() / kv_heads);
        const auto begin = part.begin() + static_cast<std::ptrdiff_t>(head) * share;
        fused.insert(fused.end(), begin, begin + share);
      }
    }
    const int64_t hidden = config["hidden_size"].get<int64_t>();
    const int64_t rows = static_cast<int64_t>(fused.size()) / hidden;
    tensors.push_back(stored_floats(path + "wqkv.weight", {rows, hidden}, fused));
  }
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"embed_tokens", "tok_embeddings"},
                                                        {"lm_head", "output"},
                                                        {"self_attn.o_proj", "attention.wo"},
                                                        {"self_attn", "attention"},
                                                        {"mlp.gate_proj", "feed_forward.w1"},
                                                        {"mlp.up_proj", "feed_forward.w3"},
                                                        {"mlp.down_proj", "feed_forward.w2"},
                                                        {"input_layernorm", "attention_norm"},
                                                        {"post_attention_layernorm", "ffn_norm"}})
    rename(from, to);
  config["model_type"] = "internlm2";
  config["bias"] = false;
  for (const char* key : {"attention_bias", "mlp_bias"}) config.erase(key);
  EXPECT_LE(distance(logits(write("internlm2")), logits(golden)), 1e-6);
}

// Published files count attention and MLP as a layer each.
TEST_F(CheckpointFamilies, DoryIsReadUnderTheNamesOfPublishedFilesToo) {
  const GoldenReference packed = open_golden(source_tree() + "/tests/golden_packed/dory.safetensors");
  open_folder(packed.folder, packed.tokens);
  for (int layer = 3; layer >= 0; --layer) {
    const std::string path = "layers." + std::to_string(layer) + ".";
    const std::string attention = "layers." + std::to_string(2 * layer) + ".";
    const std::string mlp = "layers." + std::to_string(2 * layer + 1) + ".";
    rename(path + "self_attn.", attention + "mixer.");
    rename(path + "mlp.", mlp + "mixer.");
    rename(path + "lambda_1", attention + "attn_alpha");
    rename(path + "lambda_2", mlp + "mlp_alpha");
  }
  EXPECT_TRUE(std::ranges::count(tensors, "backbone.layers.6.mixer.q_proj.weight", &Stored::name) == 1);
  EXPECT_EQ(logits(write("published")), logits(golden));
}

// Published files have images' part beside the language model's, both under `model.`.
TEST_F(CheckpointFamilies, Inkling2IsReadWithoutItsPartForImages) {
  const GoldenReference packed = open_golden(source_tree() + "/tests/golden_packed/inkling2.safetensors");
  open_folder(packed.folder, packed.tokens);
  Json text = config;
  text.erase("model_type");
  config = Json{{"model_type", "inkling2"}, {"text_config", text}, {"vision_config", Json{{"depth", 1}}}};
  tensors.push_back(stored_floats("model.visual.proj_in.weight", {2}, {1, 2}));
  EXPECT_EQ(logits(write("whole")), logits(golden));
}

// Both ways that transformers has written multimodal checkpoints.
TEST_F(CheckpointFamilies, TheLanguageModelOfAMultimodalCheckpointIsRead) {
  open("qwen2");
  const std::vector<float> want = logits(golden);
  const std::vector<Stored> plain = tensors;
  const Json text = config;
  config = Json{{"model_type", "some_vl"}, {"text_config", text}, {"vision_config", Json{{"depth", 1}}}};
  const auto unused = [&](const std::string& folder) {
    const auto model = open_model(folder);
    EXPECT_TRUE(model.ok()) << model.error().text();
    return model.ok() ? model->weights.unused : std::vector<UnusedTensor>{};
  };
  rename("model.", "language_model.model.");
  rename("lm_head.", "language_model.lm_head.");
  tensors.push_back(stored_floats("vision_tower.weight", {2}, {1, 2}));
  const std::string older = write("older");
  EXPECT_EQ(logits(older), want);
  ASSERT_EQ(unused(older).size(), 1u);
  EXPECT_EQ(unused(older)[0].name, "vision_tower.weight");
  EXPECT_EQ(unused(older)[0].why, "it belongs to another modality");

  tensors = plain;
  rename("model.", "model.language_model.");
  tensors.push_back(stored_floats("model.visual.weight", {2}, {1, 2}));
  const std::string newer = write("newer");
  EXPECT_EQ(logits(newer), want);
  EXPECT_EQ(unused(newer).size(), 1u);

  // In a language model's checkpoint the same tensor is an error.
  tensors = plain;
  tensors.push_back(stored_floats("model.visual.weight", {2}, {1, 2}));
  config = text;
  const auto refused = open_model(write("refused"));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text().find("model.visual.weight"), std::string::npos) << refused.error().text();
}

// E4M3 by its definition: sign, four bits of exponent with bias 7, three of mantissa.
float e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(1 + static_cast<float>(mantissa) / 8, exponent - 7);
  return bits & 0x80 ? -magnitude : magnitude;
}

uint8_t nearest_e4m3(float value) {
  uint8_t best = 0;
  for (int code = 0; code < 256; ++code) {
    const auto bits = static_cast<uint8_t>(code);
    if ((bits & 0x7f) != 0x7f && std::fabs(e4m3(bits) - value) < std::fabs(e4m3(best) - value)) best = bits;
  }
  return best;
}

TEST_F(CheckpointFamilies, ScaledEightBitWeightsGiveWhatTheirValuesGive) {
  constexpr int64_t kRows = 8, kColumns = 12;
  open("qwen3");
  std::vector<Stored> scaled, decoded;
  for (const Stored& tensor : tensors) {
    if (tensor.name.find("_proj.weight") == std::string::npos) {
      scaled.push_back(tensor), decoded.push_back(tensor);
      continue;
    }
    const int64_t rows = tensor.shape[0], columns = tensor.shape[1],
                  across = (columns + kColumns - 1) / kColumns;
    std::vector<float> values = floats_of(tensor), scales;
    for (int64_t i = 0; i < (rows + kRows - 1) / kRows * across; ++i)
      scales.push_back(0.01f * static_cast<float>(1 + i % 7));
    Stored codes{tensor.name, "F8_E4M3", tensor.shape, {}};
    for (int64_t i = 0; i < rows * columns; ++i) {
      const float scale = scales[static_cast<size_t>(i / columns / kRows * across + i % columns / kColumns)];
      const uint8_t code = nearest_e4m3(values[static_cast<size_t>(i)] / scale);
      codes.bytes.push_back(std::byte{code});
      values[static_cast<size_t>(i)] = e4m3(code) * scale;
    }
    scaled.push_back(std::move(codes));
    scaled.push_back(stored_floats(tensor.name + "_scale_inv", {(rows + kRows - 1) / kRows, across}, scales));
    decoded.push_back(stored_floats(tensor.name, tensor.shape, values));
  }
  tensors = decoded;
  const std::vector<float> want = logits(write("decoded"));
  tensors = scaled;
  config["quantization_config"] = Json{{"quant_method", "fp8"},
                                       {"activation_scheme", "dynamic"},
                                       {"weight_block_size", Json::array({kRows, kColumns})}};
  EXPECT_EQ(logits(write("scaled")), want);
  EXPECT_GT(distance(want, logits(golden)), 1e-3);  // and rounding shows
  take("model.layers.0.mlp.up_proj.weight_scale_inv");
  const auto refused = open_model(write("without_scales"));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text().find("scales"), std::string::npos) << refused.error().text();
}

// Also of weights that are read turned round, cut, or joined from several tensors.
TEST_F(CheckpointFamilies, ATensorWithoutValuesIsRefused) {
  for (const char* name : {"gpt2", "mixtral", "openai_gpt", "qwen3_next"}) {
    const GoldenReference packed =
        open_golden(source_tree() + "/tests/golden_packed/" + name + ".safetensors");
    tensors.clear();
    open_folder(packed.folder, packed.tokens);
    for (Stored& tensor : tensors) {
      const Stored kept = std::exchange(tensor, Stored{tensor.name, tensor.dtype, tensor.shape, {}});
      for (size_t axis = 0; axis < kept.shape.size(); ++axis) {
        tensor.shape = kept.shape;
        tensor.shape[axis] = 0;
        const auto model = open_model(write("empty"));
        ASSERT_FALSE(model.ok()) << name << ": " << kept.name << ", axis " << axis;
        EXPECT_NE(model.error().text().find(kept.name + ": its shape is"), std::string::npos)
            << model.error().text();
      }
      tensor = kept;
    }
  }
}

TEST_F(CheckpointFamilies, TheHeadIsTiedAsTheConfigurationSays) {
  open("qwen25_tied");
  Stored head = *std::ranges::find(tensors, "model.embed_tokens.weight", &Stored::name);
  head.name = "lm_head.weight";
  std::ranges::fill(head.bytes, std::byte{0});  // which transformers would not read either
  tensors.push_back(head);
  EXPECT_EQ(logits(write("tied")), logits(golden));
  config["tie_word_embeddings"] = false;
  EXPECT_EQ(norm(logits(write("untied"))), 0);
  take("lm_head.weight");
  const auto missing = open_model(write("missing"));
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().text().find("lm_head.weight"), std::string::npos) << missing.error().text();
}

}  // namespace
}  // namespace tenon
