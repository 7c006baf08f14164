// One model in every form that a checkpoint may take gives the same numbers: sharded, f16 and bf16
// safetensors, and GGUF, whose Llama files hold the rows of q and k as interleaved pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "backend/cpu/cpu_device.h"
#include "base/half.h"
#include "base/json.h"
#include "io/dequantise.h"
#include "io/folder.h"
#include "io/gguf_writer.h"
#include "io/safetensors.h"
#include "io/write_file.h"
#include "models/gguf_names.h"
#include "run/model.h"
#include "run/probe.h"
#include "run/session.h"
#include "tests/golden_reference.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_files.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::string golden_folder() {
  return source_tree() + "/tests/golden/llama";
}

struct Weight {
  TensorSpec spec;  // f32
  std::vector<float> values;
};

std::vector<Weight> golden_weights() {
  const auto model = open_model(golden_folder());
  std::vector<Weight> weights;
  for (const WeightSource& source : model->weights.sources) {
    Weight weight{{source.name, DType::f32, source.shape}, {}};
    weight.values.resize(static_cast<size_t>(source.shape.elements()));
    EXPECT_TRUE(
        load_weight(model->checkpoint, source, DType::f32, std::as_writable_bytes(std::span(weight.values)))
            .ok());
    weights.push_back(std::move(weight));
  }
  return weights;
}

class CheckpointForms : public testing::Test {
 protected:
  void SetUp() override {
    folder = scratch_folder() + "/forms_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder);
    fs::create_directories(folder);
    device = test_device(2);
  }
  void TearDown() override { fs::remove_all(folder); }

  TensorFile probe_of(const std::string& model, const std::string& weights = "as-stored") {
    ProbeRequest request;
    request.model = model;
    request.weight_choice = weights;
    request.tokens = golden_folder() + "/golden.safetensors";
    request.out = folder + "/out.safetensors";
    request.gradients = ProbeGradients::weights;
    const auto summary = probe(request, *device);
    EXPECT_TRUE(summary.ok()) << summary.error().text();
    return summary.ok() ? read_tensors(request.out) : TensorFile{};
  }

  // A Hugging Face folder with the weights rounded to `dtype`, in files of at most `tensors_per_file`
  // tensors.
  std::string write_huggingface(DType dtype, size_t tensors_per_file,
                                const std::vector<Weight>& weights = golden_weights()) {
    const std::string out = folder + "/hf";
    fs::create_directories(out);
    fs::copy_file(golden_folder() + "/config.json", out + "/config.json");
    Json index;
    for (size_t first = 0; first < weights.size(); first += tensors_per_file) {
      const size_t last = std::min(weights.size(), first + tensors_per_file);
      const bool one = tensors_per_file >= weights.size();
      const std::string name = one ? "model.safetensors" : "model-" + std::to_string(first) + ".safetensors";
      std::vector<TensorSpec> specs;
      for (size_t i = first; i < last; ++i) {
        specs.push_back({weights[i].spec.name, dtype, weights[i].spec.shape});
        index["weight_map"][weights[i].spec.name] = name;
      }
      auto writer = create_safetensors(out + "/" + name, specs, {});
      EXPECT_TRUE(writer.ok());
      for (size_t i = first; i < last; ++i) {
        std::vector<std::byte> bytes(
            static_cast<size_t>(*dtype_bytes(dtype, weights[i].spec.shape.elements())));
        quantise_row(dtype, weights[i].values.data(), bytes.data(), weights[i].spec.shape.elements());
        EXPECT_TRUE(writer->append(weights[i].spec.name, bytes).ok());
      }
      EXPECT_TRUE(writer->commit().ok());
      EXPECT_TRUE(one || write_file_atomic(out + "/model.safetensors.index.json", index.dump()).ok());
    }
    return out;
  }

  // As llama.cpp's converter: rows i and i + half of a head of q and k become neighbours.
  static std::vector<float> interleave(const Weight& weight, int64_t heads) {
    const int64_t columns = weight.spec.shape[1], head_dim = weight.spec.shape[0] / heads,
                  half = head_dim / 2;
    std::vector<float> out(weight.values.size());
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < half; ++i) {
        for (int64_t side = 0; side < 2; ++side) {
          const int64_t from = h * head_dim + side * half + i, to = h * head_dim + 2 * i + side;
          std::copy_n(weight.values.begin() + from * columns, columns, out.begin() + to * columns);
        }
      }
    }
    return out;
  }

  // Matrices in `dtype` (those whose rows are whole blocks), the rest in f32.
  std::string write_gguf(DType dtype) {
    GgufHeader header;
    header.add_string("general.architecture", "llama");
    header.add_u32("llama.block_count", 2);
    header.add_u32("llama.embedding_length", 32);
    header.add_u32("llama.feed_forward_length", 56);
    header.add_u32("llama.attention.head_count", 2);
    header.add_u32("llama.attention.head_count_kv", 1);
    header.add_u32("llama.attention.key_length", 16);
    header.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-6f);
    header.add_f32("llama.rope.freq_base", 500000.0f);
    std::vector<TensorSpec> specs;
    std::vector<std::vector<std::byte>> data;
    for (const Weight& weight : golden_weights()) {
      const bool q = weight.spec.name.find("q_proj") != std::string::npos;
      const bool k = weight.spec.name.find("k_proj") != std::string::npos;
      const std::vector<float> values = q ? interleave(weight, 2) : k ? interleave(weight, 1) : weight.values;
      const bool blocks =
          weight.spec.shape.rank() == 2 && weight.spec.shape[1] % dtype_info(dtype).block_elements == 0;
      const DType stored = blocks ? dtype : DType::f32;
      specs.push_back({gguf_tensor_name(weight.spec.name), stored, weight.spec.shape});
      std::vector<std::byte> bytes(static_cast<size_t>(*dtype_bytes(stored, weight.spec.shape.elements())));
      quantise_row(stored, values.data(), bytes.data(), weight.spec.shape.elements());
      data.push_back(std::move(bytes));
    }
    const std::string path = folder + "/model.gguf";
    auto writer = create_gguf(path, header, specs);
    EXPECT_TRUE(writer.ok()) << writer.error().text();
    for (size_t i = 0; i < specs.size(); ++i) EXPECT_TRUE(writer->append(specs[i].name, data[i]).ok());
    EXPECT_TRUE(writer->commit().ok());
    return path;
  }

  // To the bit on the CPU. A GPU has other kernels for products with stored blocks, which add in another
  // order.
  void expect_same_logits(const TensorFile& a, const TensorFile& b) const {
    if (device->facts().kind == DeviceKind::cpu) {
      EXPECT_EQ(a.floats.at("logits"), b.floats.at("logits"));
    } else {
      EXPECT_LT(distance(a.floats.at("logits"), b.floats.at("logits")), 1e-5);
    }
  }

  std::string folder;
  std::unique_ptr<Device> device;
};

TEST_F(CheckpointForms, ShardsGiveTheSameBits) {
  const TensorFile whole = probe_of(golden_folder());
  const TensorFile shards = probe_of(write_huggingface(DType::f32, 4));
  EXPECT_EQ(whole.floats, shards.floats);
}

TEST_F(CheckpointForms, AMissingShardIsNamed) {
  const std::string path = write_huggingface(DType::f32, 8);
  fs::remove(path + "/model-8.safetensors");
  const auto model = open_model(path);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::not_found);
  EXPECT_NE(model.error().text().find("model-8.safetensors"), std::string::npos) << model.error().text();
}

TEST_F(CheckpointForms, HalfPrecisionIsCloseByItsRounding) {
  const TensorFile exact = probe_of(golden_folder());
  EXPECT_LT(
      distance(probe_of(write_huggingface(DType::bf16, 100)).floats["logits"], exact.floats.at("logits")),
      2e-2);
  fs::remove_all(folder + "/hf");
  const double f16 =
      distance(probe_of(write_huggingface(DType::f16, 100)).floats["logits"], exact.floats.at("logits"));
  EXPECT_LT(f16, 2e-3);
  EXPECT_GT(f16, 0);
}

TEST_F(CheckpointForms, GgufUndoesThePermutationOfQAndK) {
  const TensorFile hugging_face = probe_of(golden_folder());
  TensorFile gguf = probe_of(write_gguf(DType::f32));
  EXPECT_EQ(gguf.floats.at("logits"), hugging_face.floats.at("logits"));
  // Gradients come in the file's own names and order: interleaved where its rows are.
  const std::vector<float>& stored = gguf.floats.at("grad.blk.0.attn_q.weight");
  Weight gradient{{"q", DType::f32, Shape{32, 32}},
                  hugging_face.floats.at("grad.model.layers.0.self_attn.q_proj.weight")};
  EXPECT_EQ(stored, interleave(gradient, 2));
  EXPECT_NE(stored, gradient.values);
}

// The golden weights as `dtype` holds them: matrices of whole blocks encoded and decoded.
std::vector<Weight> rounded_weights(DType dtype) {
  std::vector<Weight> weights = golden_weights();
  for (Weight& weight : weights) {
    if (weight.spec.shape.rank() != 2 || weight.spec.shape[1] % dtype_info(dtype).block_elements != 0)
      continue;
    std::vector<std::byte> blocks(static_cast<size_t>(*dtype_bytes(dtype, weight.spec.shape.elements())));
    quantise_row(dtype, weight.values.data(), blocks.data(), weight.spec.shape.elements());
    dequantise_row(dtype, blocks.data(), weight.values.data(), weight.spec.shape.elements());
  }
  return weights;
}

// A quantised file gives what the same values give unquantised, whether it stays quantised in memory or not.
TEST_F(CheckpointForms, QuantisedGgufEqualsItsDequantisedValues) {
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_1}) {
    fs::remove_all(folder + "/hf");
    const TensorFile plain = probe_of(write_huggingface(DType::f32, 100, rounded_weights(dtype)));
    const std::string gguf = write_gguf(dtype);
    SCOPED_TRACE(dtype_name(dtype));
    expect_same_logits(probe_of(gguf), plain);
    expect_same_logits(probe_of(gguf, "f32"), plain);
    EXPECT_GT(distance(plain.floats.at("logits"), probe_of(golden_folder()).floats.at("logits")), 1e-4);
  }
}

TEST_F(CheckpointForms, WeightsAreHeldInTheDtypeAskedFor) {
  for (const DType dtype : {DType::q8_0, DType::bf16}) {
    fs::remove_all(folder + "/hf");
    const TensorFile plain = probe_of(write_huggingface(DType::f32, 100, rounded_weights(dtype)), "f32");
    SCOPED_TRACE(dtype_name(dtype));
    expect_same_logits(probe_of(golden_folder(), std::string(dtype_name(dtype))), plain);
  }
}

TEST_F(CheckpointForms, QuantisedMatricesStayInTheFile) {
  const auto cpu = make_cpu_device(2);
  const auto model = open_model(write_gguf(DType::q4_1));
  ASSERT_TRUE(model.ok());
  const WeightDTypes stored = choose_weight_dtypes(*model, "as-stored", cpu->facts());
  EXPECT_EQ(stored.at("model.embed_tokens.weight"), DType::q4_1);
  EXPECT_FALSE(stored.contains("model.layers.0.mlp.down_proj.weight"));  // rows of 56: stored in f32
  EXPECT_FALSE(stored.contains("model.norm.weight"));
  ProgramSettings settings;
  settings.weights = stored;
  std::vector<Program> programs = {forward_program(model->spec, 4, settings)};
  const auto external = external_weights(*model, programs, *cpu);
  const auto holds = [&](std::string_view name) {
    return std::find(external.begin(), external.end(), name) != external.end();
  };
  EXPECT_TRUE(holds("model.layers.0.mlp.up_proj.weight"));
  EXPECT_FALSE(holds("model.layers.0.self_attn.q_proj.weight"));  // its rows are put in order
}

}  // namespace
}  // namespace tenon
